#include "workers/evaluators/math/compare/compare_relations.h"

#include "workers/evaluators/math/compare/compare_values.h"

/* ---- names ---------------------------------------------------------------------------------------- */

static bool all_children(const struct math_node *node, bool (*holds)(const struct math_node *))
{
    for (const struct math_node *child = node->first; child; child = child->next)
        if (!holds(child))
            return false;
    return node->first;
}

static bool is_symbol(const struct math_node *node)
{
    if (node->kind == MATH_IS_CALL)
        return (slice_is(node->text, "_") || slice_is(node->text, "'")) && is_symbol(node->first);
    return node->kind == MATH_IS_NAME && !slice_is(node->text, "pi") && !slice_is(node->text, "infty");
}

/* f(x), f^{-1}(x) */
static bool is_application(const struct math_node *node)
{
    if (node->kind != MATH_IS_PRODUCT || node->count != 2)
        return false;
    const struct math_node *function = node->first->kind == MATH_IS_POWER ? node->first->first : node->first;
    return is_symbol(function) && (node->last->is_bracketed || node->last->kind == MATH_IS_TUPLE);
}

/* x, x_1, f(x), AB, |AB|, (p,q), NO/BO: what may stand left of = and be left out. */
static bool is_name(const struct math_node *node)
{
    switch (node->kind) {
    case MATH_IS_NAME:
    case MATH_IS_WORDS: return true;
    case MATH_IS_PRODUCT: return is_application(node) || all_children(node, is_symbol);
    case MATH_IS_QUOTIENT:
    case MATH_IS_RATIO:
    case MATH_IS_TUPLE: return all_children(node, is_name);
    case MATH_IS_CALL:
        return is_symbol(node) || ((slice_is(node->text, "abs") || slice_is(node->text, "overline") ||
                                    slice_is(node->text, "vec") || slice_is(node->text, "hat")) &&
                                   is_name(node->first));
    default: return false;
    }
}

static bool same_name(struct comparison *comparison, struct view wanted, const struct math_node *a,
                      const struct math_node *b)
{
    return values_same(comparison, view_of(wanted, a), view_of(wanted, b));
}

/* ---- equations -------------------------------------------------------------------------------------- */

static const struct math_node *child_at(const struct math_node *node, size_t index)
{
    const struct math_node *child = node->first;
    for (; child && index > 0; index--)
        child = child->next;
    return child;
}

static bool is_of_signs(const struct math_node *relation, const char *signs)
{
    for (size_t i = 0; i < relation->text.len; i++)
        if (!strchr(signs, relation->text.data[i]))
            return false;
    return relation->kind == MATH_IS_RELATION;
}

/* The last of a chain of equal things, but what is only about as much. */
static size_t value_index(const struct math_node *relation)
{
    const uint8_t *about = memchr(relation->text.data, '~', relation->text.len);
    size_t at = about ? (size_t)(about - relation->text.data) : relation->count - 1;
    return at > 0 ? at : relation->count - 1;
}

bool equation_solve(const struct math_node *relation, const struct math_node **ret_name,
                    const struct math_node **ret_value)
{
    if (!is_of_signs(relation, "=~e"))
        return false;
    size_t at = value_index(relation);
    *ret_value = child_at(relation, at);
    *ret_name = NULL;
    for (size_t i = 0; i < at; i++)
        if ((i == 0 || relation->count > 2) && is_name(child_at(relation, i))) {
            *ret_name = child_at(relation, i);
            return true;
        }
    return relation->count > 2 || (!has_letters(relation->first) && !has_letters(*ret_value));
}

static bool compare_equations(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *name = NULL, *value = NULL, *given_name = NULL, *given_value = NULL;
    bool is_solved = equation_solve(wanted.node, &name, &value);
    bool is_given_solved = equation_solve(given.node, &given_name, &given_value);
    if (is_solved && is_given_solved && (!name || !given_name || same_name(comparison, wanted, name, given_name)) &&
        compare_any(comparison, view_of(wanted, value), view_of(given, given_value)))
        return true;
    if (wanted.node->count > 2 || given.node->count > 2 || !is_of_signs(wanted.node, "=") ||
        !is_of_signs(given.node, "=") || !differences_proportional(comparison, wanted, given, false))
        return false;
    bool is_question = is_solved && !has_letters(value); /* x=5 is the answer to 2x=10 */
    comparison->is_unfinished |= is_question;
    return !is_question;
}

/* ---- intervals ------------------------------------------------------------------------------------------ */

struct interval {
    const struct math_node *name;       /* NULL: an interval by itself */
    const struct math_node *low, *high; /* NULL: without end */
    bool has_low, has_high;             /* the ends belong to it */
};

static bool is_infinite(const struct math_node *node)
{
    if (node->kind == MATH_IS_NEGATIVE)
        node = node->first;
    return node->kind == MATH_IS_NAME && slice_is(node->text, "infty");
}

static bool interval_of_tuple(const struct math_node *tuple, struct interval *ret)
{
    if (tuple->kind != MATH_IS_TUPLE || tuple->count != 2)
        return false;
    *ret = (struct interval){.low = is_infinite(tuple->first) ? NULL : tuple->first,
                             .high = is_infinite(tuple->last) ? NULL : tuple->last,
                             .has_low = tuple->sign == '[',
                             .has_high = tuple->close == ']'};
    return true;
}

/* x > 2, 1 < x <= 3, 3 >= x: of a name and what has no letters of its own. */
static bool interval_of_relation(const struct math_node *relation, struct interval *ret)
{
    bool up = is_of_signs(relation, "<l"), down = is_of_signs(relation, ">g");
    if ((!up && !down) || relation->count > 3)
        return false;
    size_t at = relation->count == 3 ? 1 : is_name(relation->first) ? 0 : 1;
    const struct math_node *name = child_at(relation, at);
    const struct math_node *before = at > 0 ? child_at(relation, at - 1) : NULL, *after = name->next;
    if (!is_name(name) || (before && is_name(before)) || (after && is_name(after)))
        return false;
    bool has_before = before && strchr("lg", relation->text.data[at - 1]);
    bool has_after = after && strchr("lg", relation->text.data[at]);
    before = before && is_infinite(before) ? NULL : before;
    after = after && is_infinite(after) ? NULL : after;
    *ret = up ? (struct interval){name, before, after, has_before, has_after}
              : (struct interval){name, after, before, has_after, has_before};
    return true;
}

static bool same_end(struct comparison *comparison, struct view wanted, const struct math_node *a, struct view given,
                     const struct math_node *b)
{
    return (!a && !b) || (a && b && compare_any(comparison, view_of(wanted, a), view_of(given, b)));
}

static bool compare_intervals(struct comparison *comparison, struct view wanted, struct view given)
{
    struct interval a, b;
    if (!interval_of_relation(wanted.node, &a) && !interval_of_tuple(wanted.node, &a))
        return false;
    if (!interval_of_relation(given.node, &b) && !interval_of_tuple(given.node, &b))
        return false;
    if (a.name && b.name && !same_name(comparison, wanted, a.name, b.name))
        return false;
    return (!a.low || a.has_low == b.has_low) && (!a.high || a.has_high == b.has_high) &&
           same_end(comparison, wanted, a.low, given, b.low) && same_end(comparison, wanted, a.high, given, b.high);
}

/* ---- inequalities ----------------------------------------------------------------------------------------- */

static bool is_down(const struct math_node *relation) { return is_of_signs(relation, ">g"); }
static bool is_ordering(const struct math_node *relation) { return is_of_signs(relation, "<l") || is_down(relation); }

/* The i-th of a chain as it stands when all of it is turned to < and <=; likewise its sign: true for <=. */
static const struct math_node *turned_child(const struct math_node *relation, size_t i)
{
    return child_at(relation, is_down(relation) ? relation->count - 1 - i : i);
}

static bool turned_sign(const struct math_node *relation, size_t i)
{
    return strchr("lg", relation->text.data[is_down(relation) ? relation->text.len - 1 - i : i]);
}

static bool same_chain(struct comparison *comparison, struct view wanted, struct view given)
{
    if (wanted.node->count != given.node->count)
        return false;
    for (size_t i = 0; i < wanted.node->count; i++)
        if (!compare_any(comparison, view_of(wanted, turned_child(wanted.node, i)),
                         view_of(given, turned_child(given.node, i))))
            return false;
    return true;
}

/* -x > -1 for x < 1. */
static bool same_negated(struct comparison *comparison, struct view wanted, struct view given)
{
    for (size_t i = 0; i < 2; i++) {
        const struct math_node *side = turned_child(given.node, 1 - i);
        struct math_node child = *side,
                         negative = {.kind = MATH_IS_NEGATIVE, .first = &child, .last = &child, .count = 1};
        child.next = NULL;
        if (!values_same(comparison, view_of(wanted, turned_child(wanted.node, i)), view_of(given, &negative)))
            return false;
    }
    return true;
}

static bool is_solved(const struct math_node *relation)
{
    struct interval interval;
    return interval_of_relation(relation, &interval) && (!interval.low || !has_letters(interval.low)) &&
           (!interval.high || !has_letters(interval.high));
}

static bool compare_orderings(struct comparison *comparison, struct view wanted, struct view given)
{
    for (size_t i = 0; i < wanted.node->text.len; i++)
        if (wanted.node->count != given.node->count || turned_sign(wanted.node, i) != turned_sign(given.node, i))
            return false;
    if (same_chain(comparison, wanted, given))
        return true;
    if (wanted.node->count != 2)
        return false;
    if (same_negated(comparison, wanted, given))
        return true;
    bool is_turned = is_down(wanted.node) != is_down(given.node);
    if (!differences_proportional(comparison, wanted, given, !is_turned) ||
        (is_turned && differences_proportional(comparison, wanted, given, true)))
        return false;
    bool is_question = is_solved(wanted.node); /* x<1 is the answer to 3x<3 */
    comparison->is_unfinished |= is_question;
    return !is_question;
}

static bool compare_sides(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *a = wanted.node, *b = given.node;
    if (a->count != 2 || b->count != 2)
        return false;
    return (compare_any(comparison, view_of(wanted, a->first), view_of(given, b->first)) &&
            compare_any(comparison, view_of(wanted, a->last), view_of(given, b->last))) ||
           (compare_any(comparison, view_of(wanted, a->first), view_of(given, b->last)) &&
            compare_any(comparison, view_of(wanted, a->last), view_of(given, b->first)));
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

bool compare_relations(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *name, *value, *a = wanted.node, *b = given.node;
    bool is_equation = is_of_signs(a, "=~e"), is_given_equation = is_of_signs(b, "=~e");
    if (is_equation && is_given_equation)
        return compare_equations(comparison, wanted, given);
    if (is_equation)
        return equation_solve(a, &name, &value) && compare_any(comparison, view_of(wanted, value), given);
    if (is_given_equation)
        return equation_solve(b, &name, &value) && compare_any(comparison, wanted, view_of(given, value));
    if (compare_intervals(comparison, wanted, given))
        return true;
    if (is_ordering(a) && is_ordering(b))
        return compare_orderings(comparison, wanted, given);
    if (is_of_signs(a, "!") && is_of_signs(b, "!"))
        return compare_sides(comparison, wanted, given);
    return a->kind == b->kind && slice_equal(a->text, b->text) && values_same(comparison, wanted, given);
}
