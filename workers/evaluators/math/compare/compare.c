#include "workers/evaluators/math/compare/compare.h"

#include <ctype.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/math/compare/compare_relations.h"
#include "workers/evaluators/math/compare/compare_values.h"

enum { VIEWS_MAX = 128 };

/* ---- lists ----------------------------------------------------------------------------------------- */

struct element {
    struct view view;
    const struct math_node *name; /* of an equation that is solved; then the view is its value */
};

struct elements {
    size_t count;
    struct element at[VIEWS_MAX];
};

static bool has_both_signs(const struct math_node *node)
{
    if (node->kind == MATH_IS_SIGNED)
        return true;
    for (const struct math_node *child = node->first; child; child = child->next)
        if (has_both_signs(child))
            return true;
    return false;
}

static bool is_plural(struct view view) { return view.sign == SIGN_BOTH && has_both_signs(view.node); }

static bool add_element(struct elements *elements, struct view view)
{
    struct element element = {.view = view};
    const struct math_node *value;
    if (elements->count == VIEWS_MAX)
        return false;
    if (view.node->kind == MATH_IS_RELATION && equation_solve(view.node, &element.name, &value))
        element.view.node = value;
    elements->at[elements->count++] = element;
    return true;
}

/* An element with \pm is two. */
static bool add_elements(struct elements *elements, struct view view)
{
    if (!is_plural(view))
        return add_element(elements, view);
    return add_element(elements, (struct view){view.node, SIGN_PLUS}) &&
           add_element(elements, (struct view){view.node, SIGN_MINUS});
}

static bool is_list(const struct math_node *node) { return node->kind == MATH_IS_LIST || node->kind == MATH_IS_SET; }

static bool list_elements(struct view view, struct elements *ret)
{
    ret->count = 0;
    if (!is_list(view.node))
        return add_elements(ret, view);
    for (const struct math_node *child = view.node->first; child; child = child->next)
        if (!add_elements(ret, view_of(view, child)))
            return false;
    return true;
}

static bool same_text(struct comparison *comparison, const struct math_node *a, const struct math_node *b)
{
    struct view left = {a, SIGN_PLUS}, right = {b, SIGN_PLUS};
    return values_same(comparison, left, right);
}

static const struct math_node *base_of(const struct math_node *name)
{
    return name->kind == MATH_IS_CALL && slice_is(name->text, "_") ? name->first : name;
}

/* a=4, b=5: each has a name of its own, and not as x_1, x_2 or x=1, x=2 have. */
static bool all_named(struct comparison *comparison, const struct elements *elements)
{
    for (size_t i = 0; i < elements->count; i++) {
        if (!elements->at[i].name)
            return false;
        for (size_t k = 0; k < i; k++)
            if (same_text(comparison, base_of(elements->at[i].name), base_of(elements->at[k].name)))
                return false;
    }
    return elements->count > 1;
}

static bool compare_elements(struct comparison *comparison, const struct element *wanted, const struct element *given)
{
    if (wanted->name && given->name && !same_text(comparison, wanted->name, given->name))
        return false;
    return compare_any(comparison, wanted->view, given->view);
}

static bool compare_in_order(struct comparison *comparison, const struct elements *wanted, const struct elements *given)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (i >= given->count || !compare_elements(comparison, &wanted->at[i], &given->at[i]))
            return false;
    return wanted->count == given->count;
}

/* One to one, or where is_set is true, none without one like it. */
static bool compare_in_any_order(struct comparison *comparison, const struct elements *wanted,
                                 const struct elements *given, bool is_set)
{
    bool taken[VIEWS_MAX] = {false};
    if (!is_set && wanted->count != given->count)
        return false;
    for (size_t i = 0; i < wanted->count; i++) {
        bool found = false;
        for (size_t k = 0; k < given->count && (!found || is_set); k++)
            if ((is_set || !taken[k]) && compare_elements(comparison, &wanted->at[i], &given->at[k]))
                taken[k] = found = true;
        if (!found)
            return false;
    }
    for (size_t k = 0; k < given->count; k++)
        if (!taken[k])
            return false;
    return true;
}

static bool has_tuples(const struct elements *elements)
{
    for (size_t i = 0; i < elements->count; i++)
        if (elements->at[i].view.node->kind != MATH_IS_TUPLE)
            return false;
    return elements->count > 0;
}

static bool compare_lists(struct comparison *comparison, struct view wanted, struct view given)
{
    AUTO_FREE struct elements *a = malloc(sizeof(*a));
    AUTO_FREE struct elements *b = malloc(sizeof(*b));
    if (!a || !b || !list_elements(wanted, a) || !list_elements(given, b))
        return false;
    bool is_named = all_named(comparison, a), is_given_named = all_named(comparison, b);
    if (is_named != is_given_named)
        return compare_in_order(comparison, a, b);
    bool is_set = wanted.node->kind == MATH_IS_SET || given.node->kind == MATH_IS_SET ||
                  (has_tuples(a) && has_tuples(b));
    if (a->count == 1 && b->count == 1 && is_list(wanted.node) != is_list(given.node))
        return false;
    return compare_in_any_order(comparison, a, b, is_set);
}

static struct slice first_letters(const struct math_node *name)
{
    while (name->first)
        name = name->first;
    return name->text;
}

/* x=1, y=2 are a point's coordinates in their order; of y=1, x=2 nobody knows. */
static bool is_alphabetical(const struct elements *elements)
{
    for (size_t i = 1; i < elements->count; i++) {
        struct slice before = first_letters(elements->at[i - 1].name), here = first_letters(elements->at[i].name);
        if (memcmp(before.data, here.data, before.len < here.len ? before.len : here.len) > 0)
            return false;
    }
    return true;
}

/* p=5, q=2 and (5,2) */
static bool compare_with_tuple(struct comparison *comparison, struct view list, struct view tuple, bool is_list_wanted)
{
    AUTO_FREE struct elements *a = malloc(sizeof(*a));
    AUTO_FREE struct elements *b = malloc(sizeof(*b));
    if (tuple.node->sign != '(' || tuple.node->close != ')' || !a || !b || !list_elements(list, a) ||
        !all_named(comparison, a) || !is_alphabetical(a))
        return false;
    b->count = 0;
    for (const struct math_node *child = tuple.node->first; child; child = child->next)
        if (!add_element(b, view_of(tuple, child)))
            return false;
    return is_list_wanted ? compare_in_order(comparison, a, b) : compare_in_order(comparison, b, a);
}

/* ---- structures ----------------------------------------------------------------------------------------- */

static bool compare_children(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *a = wanted.node->first, *b = given.node->first;
    for (; a && b; a = a->next, b = b->next)
        if (!compare_any(comparison, view_of(wanted, a), view_of(given, b)))
            return false;
    return !a && !b;
}

static bool compare_unions(struct comparison *comparison, struct view wanted, struct view given)
{
    AUTO_FREE struct elements *a = malloc(sizeof(*a));
    AUTO_FREE struct elements *b = malloc(sizeof(*b));
    if (!a || !b)
        return false;
    a->count = b->count = 0;
    for (const struct math_node *child = wanted.node->first; child; child = child->next)
        if (!add_element(a, view_of(wanted, child)))
            return false;
    for (const struct math_node *child = given.node->first; child; child = child->next)
        if (!add_element(b, view_of(given, child)))
            return false;
    return compare_in_any_order(comparison, a, b, true);
}

/* 6:10 is 3:5, but 12:00 is no 1:0. */
static bool compare_ratios(struct comparison *comparison, struct view wanted, struct view given)
{
    if (compare_children(comparison, wanted, given))
        return true;
    const struct math_node *a = wanted.node, *b = given.node;
    if (a->count != 2 || b->count != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct math_node *side = i == 0 ? a->last : b->last;
        if (side->kind == MATH_IS_NUMBER &&
            (side->number.residue == 0 || (side->text.len && side->text.data[0] == '0')))
            return false;
    }
    struct math_node left = *a, right = *b;
    left.kind = right.kind = MATH_IS_QUOTIENT;
    return values_same(comparison, view_of(wanted, &left), view_of(given, &right));
}

static bool compare_words(struct slice a, struct slice b)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a.len && isspace(a.data[i]))
            i++;
        while (k < b.len && isspace(b.data[k]))
            k++;
        if (i == a.len || k == b.len)
            return i == a.len && k == b.len;
        bool one_letter = a.len == 1 || b.len == 1;
        if (one_letter ? a.data[i] != b.data[k] : tolower(a.data[i]) != tolower(b.data[k]))
            return false;
    }
}

static bool compare_texts(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *a = wanted.node, *b = given.node;
    if (a->kind == MATH_IS_WORDS && b->kind == MATH_IS_WORDS)
        return compare_words(a->text, b->text);
    const struct math_node *words = a->kind == MATH_IS_WORDS ? a : b, *other = words == a ? b : a;
    if (!words->first)
        return other->kind == MATH_IS_NAME && compare_words(words->text, other->text);
    return words == a ? compare_any(comparison, view_of(wanted, words->first), given)
                      : compare_any(comparison, wanted, view_of(given, words->first));
}

/* ---- units and percentages ---------------------------------------------------------------------------------- */

static bool is_measure(const struct math_node *node)
{
    return node->kind == MATH_IS_UNIT || node->kind == MATH_IS_PERCENT;
}

static bool compare_measures(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *a = wanted.node, *b = given.node;
    if (is_measure(a) && is_measure(b))
        return a->kind == b->kind && slice_equal(a->text, b->text) &&
               compare_any(comparison, view_of(wanted, a->first), view_of(given, b->first));
    struct view bare_wanted = is_measure(a) ? view_of(wanted, a->first) : wanted;
    struct view bare_given = is_measure(b) ? view_of(given, b->first) : given;
    if (compare_any(comparison, bare_wanted, bare_given))
        return true;
    bool is_percent = a->kind == MATH_IS_PERCENT || b->kind == MATH_IS_PERCENT;
    return is_percent ? is_plain_number(bare_wanted.node) && is_plain_number(bare_given.node) &&
                            values_same(comparison, wanted, given)
                      : values_same(comparison, wanted, given);
}

/* ---- any --------------------------------------------------------------------------------------------------------- */

static bool compare_structures(struct comparison *comparison, struct view wanted, struct view given)
{
    const struct math_node *a = wanted.node, *b = given.node;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case MATH_IS_TUPLE:
        return a->sign == b->sign && a->close == b->close && compare_children(comparison, wanted, given);
    case MATH_IS_MATRIX: return a->columns == b->columns && compare_children(comparison, wanted, given);
    case MATH_IS_UNION: return compare_unions(comparison, wanted, given);
    default: return compare_ratios(comparison, wanted, given);
    }
}

static bool is_structure(const struct math_node *node)
{
    return node->kind == MATH_IS_TUPLE || node->kind == MATH_IS_MATRIX || node->kind == MATH_IS_UNION ||
           node->kind == MATH_IS_RATIO;
}

static bool either(bool (*holds)(const struct math_node *), struct view a, struct view b)
{
    return holds(a.node) || holds(b.node);
}

static bool is_relation(const struct math_node *node) { return node->kind == MATH_IS_RELATION; }
static bool is_words(const struct math_node *node) { return node->kind == MATH_IS_WORDS; }

bool compare_any(struct comparison *comparison, struct view wanted, struct view given)
{
    if (comparison->fuel-- <= 0)
        return false;
    if (is_plural(wanted) || is_plural(given))
        return compare_lists(comparison, wanted, given);
    if (is_list(wanted.node) && given.node->kind == MATH_IS_TUPLE)
        return compare_with_tuple(comparison, wanted, given, true);
    if (is_list(given.node) && wanted.node->kind == MATH_IS_TUPLE)
        return compare_with_tuple(comparison, given, wanted, false);
    if (either(is_list, wanted, given) && !either(is_relation, wanted, given))
        return compare_lists(comparison, wanted, given);
    if (either(is_relation, wanted, given))
        return compare_relations(comparison, wanted, given);
    if (either(is_words, wanted, given))
        return compare_texts(comparison, wanted, given);
    if (either(is_measure, wanted, given))
        return compare_measures(comparison, wanted, given);
    if (either(is_structure, wanted, given))
        return compare_structures(comparison, wanted, given);
    return compare_values(comparison, wanted, given);
}
