/*
 * call.h - what filters, tests, functions and methods have in common: arguments, tables of names, and what stands in a
 * value. What is not in a table is refused by its name.
 */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_CALLS_CALL_H
#define SLUICE_WORKERS_ENGINES_JINJA_CALLS_CALL_H

#include "workers/engines/jinja/values/value.h"

enum { JINJA_ARGUMENTS_MAX = 16 };

struct jinja_arguments {
    size_t count, named_count;
    struct jinja_value list[JINJA_ARGUMENTS_MAX], named[JINJA_ARGUMENTS_MAX];
    struct slice names[JINJA_ARGUMENTS_MAX];
};

/* The argument at that place, or of that name ("": it has none); NULL: it was not given. */
const struct jinja_value *jinja_argument(const struct jinja_arguments *given, size_t place, const char *name);
/* The same of a kind, and a failure where it is another: `standard` where it was not given. */
int64_t jinja_argument_whole(struct jinja_run *run, const struct jinja_arguments *given, size_t place, const char *name,
                             int64_t standard);
bool jinja_argument_true(const struct jinja_arguments *given, size_t place, const char *name);
/* NULL: it was not given, or is None. */
const struct slice *jinja_argument_text(struct jinja_run *run, const struct jinja_arguments *given, size_t place,
                                        const char *name);

typedef struct jinja_value jinja_call(struct jinja_run *run, const struct jinja_value *of,
                                      const struct jinja_arguments *given);

/* A row: `names` are those of its arguments, "one|of|these", at most `most` of them. */
struct jinja_callable {
    const char *name;
    jinja_call *call;
    size_t most;
    const char *names;
};
extern const char jinja_any_name[]; /* for `names` */
/* Calls the one of that name, or fails, as `what` it is. A NULL call ends the table. */
struct jinja_value jinja_call_named(struct jinja_run *run, const struct jinja_callable *table, const char *what,
                                    struct slice name, const struct jinja_value *of,
                                    const struct jinja_arguments *given);

/* a.name as a member; undefined: there is none. */
struct jinja_value jinja_attribute(struct jinja_run *run, const struct jinja_value *of, struct slice name);
/* The same of "a.b.0", as filters have it; `otherwise`, unless it is NULL, in place of what is not there. */
struct jinja_value jinja_path(struct jinja_run *run, const struct jinja_value *of, struct slice path,
                              const struct jinja_value *otherwise);
struct jinja_value jinja_item(struct jinja_run *run, const struct jinja_value *of, const struct jinja_value *key);
/* Whether it is in it, as `in` has it. */
bool jinja_contains(struct jinja_run *run, const struct jinja_value *in, const struct jinja_value *what);
/* What a loop over it sees: a list's items, a dict's keys, a text's characters. */
struct jinja_list *jinja_items(struct jinja_run *run, const struct jinja_value *of);

#endif
