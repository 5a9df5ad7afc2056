/* text.h - text as Python's str has it: characters, blanks, and how values are written. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_VALUES_TEXT_H
#define SLUICE_WORKERS_ENGINES_JINJA_VALUES_TEXT_H

#include "common/base/buffer.h"
#include "workers/engines/jinja/values/value.h"

/* Bytes of the character that the text, which is not empty, begins with: one where it is not UTF-8. */
size_t jinja_character(struct slice text);
size_t jinja_length(struct slice text); /* in characters */
/* Whether all of it is ASCII: of other letters the cases are not known here. */
bool jinja_is_ascii(struct slice text);
/* Where `what` stands in it first; NULL: nowhere. */
const uint8_t *jinja_find(struct slice text, struct slice what);

/* A failure where Python has no list for it, and writes no list. */
void jinja_refuse_view(struct jinja_run *run, const struct jinja_list *list);
/* str() and repr() of it. */
void jinja_write(struct jinja_run *run, const struct jinja_value *value, struct buffer *out);
void jinja_write_repr(struct jinja_run *run, const struct jinja_value *value, struct buffer *out);
struct jinja_value jinja_str(struct jinja_run *run, const struct jinja_value *value);

#endif
