/* json_text.h - JSON as text in a buffer: strings, numbers, and whole values without blanks. */
#ifndef SLUICE_CLIENT_GATEWAY_JSON_TEXT_H
#define SLUICE_CLIENT_GATEWAY_JSON_TEXT_H

#include <jansson.h>

#include "common/base/buffer.h"

/* A string in quotes. What is not UTF-8 becomes U+FFFD. */
void json_text_append(struct buffer *out, struct slice text);
/* The shortest of 15 and 17 digits that reads back the same; null where it is not finite. */
void json_text_append_number(struct buffer *out, double number);
/* Without blanks, members in their order, a number as the shortest text that means the same. */
void json_text_append_value(struct buffer *out, const json_t *value);
/* What a text holds; NULL: it is no JSON object or array. */
json_t *json_text_read(struct slice text);
/* As printf: %s is a string that is quoted and escaped, %j JSON as it is, %d and %u are 64 bits, %g is a double. */
void json_text_printf(struct buffer *out, const char *format, ...);

#endif
