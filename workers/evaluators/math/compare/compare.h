/*
 * evaluators/math/compare/compare.h - whether an answer is the task's, as trees: what the files that compare share.
 * compare.c takes structures apart, compare_relations.c equations and inequalities, compare_values.c decides about
 * expressions.
 *
 * Always the task's answer first: it decides what the other may be. Equality is not symmetric: an answer may not leave
 * undone what the task's has done ("unfinished"), or a question would be its own answer: 2+2 is not 4, and 4 is 2+2.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_COMPARE_H
#define SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_COMPARE_H

#include "workers/evaluators/math/answer.h"
#include "workers/evaluators/math/parse/tree.h"

struct comparison {
    const struct math_options *options;
    long fuel;          /* nodes that may still be looked at */
    bool is_unfinished; /* something was equal but for work left undone */
};

enum sign { SIGN_BOTH, SIGN_PLUS, SIGN_MINUS };

/* A node, and what \pm in it is: both at first, then one of two. */
struct view {
    const struct math_node *node;
    enum sign sign;
};

static inline struct view view_of(struct view of, const struct math_node *node) { return (struct view){node, of.sign}; }

bool compare_any(struct comparison *comparison, struct view wanted, struct view given);

#endif
