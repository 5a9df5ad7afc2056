/* value_look.h - what values are, what stands in a dict, and two of them compared. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_VALUES_VALUE_LOOK_H
#define SLUICE_WORKERS_ENGINES_JINJA_VALUES_VALUE_LOOK_H

#include "workers/engines/jinja/values/value.h"

/* NULL: not there. */
const struct jinja_value *jinja_dict_find(struct jinja_run *run, const struct jinja_dict *dict,
                                          const struct jinja_value *key);
const struct jinja_value *jinja_dict_named(struct jinja_run *run, const struct jinja_dict *dict, struct slice name);

bool jinja_is_number(const struct jinja_value *value); /* bools are, as in Python */
double jinja_number(const struct jinja_value *value);
bool jinja_is_whole(const struct jinja_value *value);
int64_t jinja_whole(const struct jinja_value *value);
bool jinja_is_true(const struct jinja_value *value);
bool jinja_equal(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b);
/* Below, at or above 0; of what Python does not compare, a failure. */
int jinja_compare(struct jinja_run *run, const struct jinja_value *a, const struct jinja_value *b);
const char *jinja_kind_word(const struct jinja_value *value); /* as Python calls it */

#endif
