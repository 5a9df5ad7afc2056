/*
 * evaluators/math/parse/tree.h - an answer as a tree. math_parse() (parse.h) makes it, and math_tree_finish() frees all
 * of it. Bounded: MATH_DEPTH_MAX levels while it is made,
 * MATH_HEIGHT_MAX of the tree, three nodes a token; what goes through it fits into the stack of a fiber (256 KiB).
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_TREE_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_TREE_H

#include "workers/evaluators/math/parse/number.h"

enum { MATH_DEPTH_MAX = 32, MATH_HEIGHT_MAX = 40, MATH_UNIT_SIZE = 48 };

enum math_kind {
    MATH_IS_NUMBER,
    MATH_IS_NAME, /* text */
    MATH_IS_SUM,
    MATH_IS_PRODUCT, /* any number of children */
    MATH_IS_QUOTIENT,
    MATH_IS_POWER,
    MATH_IS_NEGATIVE,
    MATH_IS_SIGNED, /* sign: '+' for \pm, '-' for \mp, of one child */
    MATH_IS_CALL,   /* text: sin, abs, binom, sum, _, ' */
    MATH_IS_TUPLE,  /* sign and close: its brackets */
    MATH_IS_SET,
    MATH_IS_LIST,
    MATH_IS_MATRIX,   /* columns; children row by row */
    MATH_IS_RELATION, /* text: the sign between each two children */
    MATH_IS_UNION,
    MATH_IS_RATIO,
    MATH_IS_UNIT, /* text: of one child */
    MATH_IS_PERCENT,
    MATH_IS_WORDS, /* text, without children; or a run of letters, whose product is the child */
};

struct math_node {
    enum math_kind kind;
    char sign, close;
    bool is_bracketed; /* ( ) stood around it */
    bool is_mixed;     /* of a sum: 1 1/2 */
    size_t count, columns;
    unsigned height; /* 0: it has no children */
    struct math_node *first, *last, *next;
    struct slice text;
    struct math_number number;
};

struct math_tree {
    struct math_tokens tokens;
    struct math_node *nodes;
    size_t count, room;
    char *units; /* the texts of MATH_IS_UNIT */
    size_t units_used;
    struct math_node *root;
};

/* These make nodes; NULL: no room is left, the tree would be too high, or a child is NULL. */
struct math_node *node_new(struct math_tree *tree, enum math_kind kind);
struct math_node *node_of(struct math_tree *tree, enum math_kind kind, struct math_node *child);
struct math_node *node_of_two(struct math_tree *tree, enum math_kind kind, struct math_node *a, struct math_node *b);
/* b may be NULL: there is one argument. `name` is static. */
struct math_node *node_call(struct math_tree *tree, const char *name, struct math_node *a, struct math_node *b);
struct math_node *node_integer(struct math_tree *tree, unsigned value);
void node_push(struct math_node *node, struct math_node *child);

/* Whether all of it is made of numbers. */
bool node_is_numeric(const struct math_node *node);

void math_tree_finish(struct math_tree *tree);

#endif
