/* values.h - JSON of what trajectories hold, for the writers: text of any bytes, numbers, an id out of names. */
#ifndef SLUICE_CLIENT_TRACE_VALUES_H
#define SLUICE_CLIENT_TRACE_VALUES_H

#include <jansson.h>

#include "common/base/buffer.h"

/* A string; what is no UTF-8 in it is '?'. */
json_t *value_text(const char *text);
/* Takes the value; nothing is set for NULL, or for a text that is "". */
void value_set(json_t *object, const char *key, json_t *value);
void value_set_text(json_t *object, const char *key, const char *text);
/* Takes the value and appends it, compact and in ASCII, so that it steers no terminal. */
bool value_append(struct buffer *out, json_t *value);
/* The same, straight into a buffer: a string in quotes, in ASCII. */
void value_put_text(struct buffer *out, const char *text);
/* A finite double, in the digits that say which it is. */
void value_put_real(struct buffer *out, double number);
/* Two hexadecimal digits a byte, and a NUL. */
void value_hex(const uint8_t *bytes, size_t count, char *ret);

#endif
