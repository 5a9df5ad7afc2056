/*
 * task_value.h - a value of a task's JSON where it stands in the text: nothing is made of what nobody asks for, and a
 * text is copied once, to where the task keeps it.
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_VALUE_H
#define SLUICE_SCHEMAS_TASK_TASK_VALUE_H

#include <jansson.h>

#include "common/base/arena.h"
#include "common/json/json_doc_look.h"

/* Passed by value; good for as long as the document is. */
struct task_value {
    const struct json_doc *doc;
    const struct json_doc_node *at; /* NULL: it is not there */
};

static inline bool task_value_is(struct task_value value, enum json_doc_kind kind)
{
    return value.at && value.at->kind == kind;
}

/* Elements of an array or members of an object; 0 of anything else. */
size_t task_value_count(struct task_value value);
/* A member of an object; not there: there is none, or it is no object. */
struct task_value task_value_get(struct task_value object, const char *name);

/*
 * What is in an array or an object, in turn:
 *     for (struct task_values each = task_values_of(list); task_values_next(&each);)
 */
struct task_values {
    struct task_value name; /* in an object, a string */
    struct task_value value;
    size_t at;
    const struct json_doc_node *next;
    size_t left;
    bool has_names;
};

struct task_values task_values_of(struct task_value container);
bool task_values_next(struct task_values *values);

/* A string as it is meant, with a NUL behind it; NULL: no memory. */
const char *task_value_text(struct task_value string, struct arena *arena);
/* A container or a string as jansson reads it, the caller's; NULL: no memory. */
json_t *task_value_load(struct task_value value);

#endif
