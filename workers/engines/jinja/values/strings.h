/* strings.h - what Python's str does with one text: pieces of it, other letters, other words. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_VALUES_STRINGS_H
#define SLUICE_WORKERS_ENGINES_JINJA_VALUES_STRINGS_H

#include "workers/engines/jinja/values/value.h"

/* Between a template's quotes: its escapes resolved. */
struct slice jinja_unescape(struct jinja_run *run, struct slice text);

enum jinja_sides { JINJA_LEFT = 1, JINJA_RIGHT = 2, JINJA_BOTH = 3 };
/* Without blanks at these ends, or without any of these characters. */
struct slice jinja_strip(struct slice text, const struct slice *characters, enum jinja_sides sides);

/* TITLE: as str.title has it; WORDS: as the filter has it. */
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_CAPITAL, JINJA_TITLE, JINJA_WORDS };
struct jinja_value jinja_recase(struct jinja_run *run, struct slice text, enum jinja_case to);

/* most < 0: all of them. */
struct jinja_value jinja_replace(struct jinja_run *run, struct slice text, struct slice from, struct slice to,
                                 int64_t most);
/* At blanks where `separator` is NULL; from the right where is_right. */
struct jinja_value jinja_split(struct jinja_run *run, struct slice text, const struct slice *separator, int64_t most,
                               bool is_right);
struct jinja_value jinja_split_lines(struct jinja_run *run, struct slice text, bool keeps_ends);

#endif
