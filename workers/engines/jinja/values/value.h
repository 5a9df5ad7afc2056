/*
 * value.h - what templates compute with, as Python has it. All memory is the rendering's; values are copied freely, and
 * what they point to is shared.
 */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_VALUES_VALUE_H
#define SLUICE_WORKERS_ENGINES_JINJA_VALUES_VALUE_H

#include <jansson.h>

#include "common/base/slice.h"
#include "workers/engines/jinja/values/run.h"

enum jinja_kind {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INTEGER,
    JINJA_REAL,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_DICT,
    JINJA_CALLABLE
};

struct jinja_value {
    enum jinja_kind kind;
    union {
        bool truth;
        int64_t integer;
        double real;
        struct slice text; /* string; undefined: the name that is; callable: of a function, where `macro` is NULL */
        struct jinja_list *list;
        struct jinja_dict *dict;
        struct jinja_frame *frame; /* callable: what a macro sees */
    };
    const struct jinja_node *macro;
};

/* What Python has no list for, and so writes otherwise. */
enum jinja_view { JINJA_NO_VIEW, JINJA_RANGE, JINJA_DICT_VIEW, JINJA_GENERATOR };

struct jinja_list {
    struct jinja_value *items;
    size_t count, capacity;
    enum jinja_view view;
    bool is_tuple, is_mutable; /* mutable: what it holds, or some of it; no dict has it as a key */
    unsigned levels;           /* of what it holds, and itself */
};

struct jinja_pair {
    struct jinja_value key, value;
};

struct jinja_dict { /* in the order of insertion; small */
    struct jinja_pair *pairs;
    size_t count, capacity;
    bool is_namespace; /* its members may be set; counts as one level, as nobody walks it */
    unsigned levels;
};

static inline struct jinja_value jinja_undefined(const char *name)
{
    return (struct jinja_value){.kind = JINJA_UNDEFINED, .text = slice_from_str(name)};
}
static inline struct jinja_value jinja_none(void) { return (struct jinja_value){.kind = JINJA_NONE}; }
static inline struct jinja_value jinja_bool(bool truth)
{
    return (struct jinja_value){.kind = JINJA_BOOL, .truth = truth};
}
static inline struct jinja_value jinja_integer(int64_t integer)
{
    return (struct jinja_value){.kind = JINJA_INTEGER, .integer = integer};
}
static inline struct jinja_value jinja_real(double real)
{
    return (struct jinja_value){.kind = JINJA_REAL, .real = real};
}
/* Borrowed. */
static inline struct jinja_value jinja_string(struct slice text)
{
    return (struct jinja_value){.kind = JINJA_STRING, .text = text};
}
/* A copy; the buffer, which jinja_append filled, is finished. */
struct jinja_value jinja_string_of(struct jinja_run *run, struct buffer *text);

/* Never NULL: after a failure something empty, which nobody else has. */
struct jinja_list *jinja_list_new(struct jinja_run *run);
void jinja_list_add(struct jinja_run *run, struct jinja_list *list, struct jinja_value value);
struct jinja_value jinja_list_value(struct jinja_list *list);
struct jinja_value jinja_view_value(struct jinja_list *list, enum jinja_view view);
struct jinja_value jinja_tuple_of(struct jinja_run *run, struct jinja_value first, struct jinja_value second);
struct jinja_dict *jinja_dict_new(struct jinja_run *run);
void jinja_dict_set(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key, struct jinja_value value);
void jinja_dict_put(struct jinja_run *run, struct jinja_dict *dict, const char *name, struct jinja_value value);
struct jinja_value jinja_dict_value(struct jinja_dict *dict);

struct jinja_value jinja_of_json(struct jinja_run *run, const json_t *json);

#endif
