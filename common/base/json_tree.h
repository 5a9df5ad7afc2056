/*
 * json_tree.h - a JSON text, read once into one array of nodes that point into it. For what an
 * engine says of thousands of tokens, and for the broker's and workers' many tasks, where a hash
 * table and a copy of every name and string would cost more than all the rest.
 *
 * Strict: RFC 8259, no name twice in one object (readers differ in which they take), UTF-8 not
 * checked (readers repair what they keep), at most TREE_LEVELS_MAX deep. Memory: 24 bytes a node, of which a byte of text makes at most one half. The text must
 * outlive the tree.
 */
#ifndef SLUICE_COMMON_BASE_JSON_TREE_H
#define SLUICE_COMMON_BASE_JSON_TREE_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

enum { TREE_LEVELS_MAX = 64 };

enum tree_kind {
    TREE_NULL,
    TREE_FALSE,
    TREE_TRUE,
    TREE_INTEGER, /* written without a point or an exponent, and fits an int64_t */
    TREE_REAL,
    TREE_STRING,
    TREE_ARRAY,
    TREE_OBJECT,
};

struct tree_node {
    enum tree_kind kind : 8;
    bool has_escapes : 1; /* string */
    uint32_t next;        /* index of the node behind this one and all within it */
    uint32_t count;       /* array: elements; object: members (a name and a value each) */
    union {
        int64_t integer;
        double real;
        struct {
            uint32_t from, len; /* string: between its quotes, in the text */
        };
    };
};

struct tree {
    struct slice text;
    struct tree_node *nodes; /* the first is the root */
    size_t count, capacity;
};

/* -EPROTO with a sentence when the text is no JSON, -ENOMEM. tree_finish it also after an error. */
int tree_parse(struct slice text, struct tree *ret, struct fail *fail);
void tree_finish(struct tree *tree);

/* Nodes are borrowed from the tree. All of these take NULL for "not there". */
const struct tree_node *tree_root(const struct tree *tree);
/* The value of a member; NULL: not there, or no object. */
const struct tree_node *tree_get(const struct tree *tree, const struct tree_node *object,
                                 const char *name);
/* Element `at`, in time proportional to it; NULL: not there, or no array. */
const struct tree_node *tree_at(const struct tree *tree, const struct tree_node *array,
                                uint32_t at);
/*
 * The first element of an array that has one, and the one behind an element that is not the last.
 * Behind an object's node stand its members in order: a name (TREE_STRING) and its value each.
 */
const struct tree_node *tree_first(const struct tree_node *array);
const struct tree_node *tree_behind(const struct tree *tree, const struct tree_node *node);
uint32_t tree_count(const struct tree_node *array); /* 0 when it is no array */

/* False: not there, or of another kind; *ret stays as it was. */
bool tree_id(const struct tree_node *node, uint32_t *ret);     /* an integer of 0..INT32_MAX */
bool tree_number(const struct tree_node *node, double *ret);   /* an integer or a real */
/* What stands between the quotes: what is meant, unless `has_escapes`. */
struct slice tree_raw(const struct tree *tree, const struct tree_node *string);
bool tree_is(const struct tree *tree, const struct tree_node *node, const char *string);
/* The string as it is meant, appended; what \u cannot mean becomes U+FFFD. */
bool tree_string(const struct tree *tree, const struct tree_node *node, struct buffer *ret);

#endif
