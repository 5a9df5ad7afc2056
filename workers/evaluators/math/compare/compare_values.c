#include "workers/evaluators/math/compare/compare_values.h"

#include <math.h>

#include "workers/evaluators/math/compare/real.h"

enum { RESIDUE_POINTS = 3, REAL_POINTS = 5, DIGITS_SURE = 12 };

/* ---- what an expression is made of ------------------------------------------------------------- */

bool has_letters(const struct math_node *node)
{
    if (node->kind == MATH_IS_NAME)
        return !slice_is(node->text, "pi") && !slice_is(node->text, "e") && !slice_is(node->text, "i") &&
               !slice_is(node->text, "infty");
    for (const struct math_node *child = node->first; child; child = child->next)
        if (has_letters(child))
            return true;
    return false;
}

static bool is_ten(const struct math_node *node)
{
    return node->kind == MATH_IS_NUMBER && node->number.is_whole && node->number.residue == 10;
}

static bool is_integer(const struct math_node *node)
{
    if (node->kind == MATH_IS_NEGATIVE)
        node = node->first;
    return node->kind == MATH_IS_NUMBER && node->number.is_whole;
}

static bool is_signed_number(const struct math_node *node)
{
    while (node->kind == MATH_IS_NEGATIVE)
        node = node->first;
    return node->kind == MATH_IS_NUMBER;
}

/* 12, -1.5, 3/4, 1 1/2, 0.\overline{3}, 2*10^5, 10^5 */
bool is_plain_number(const struct math_node *node)
{
    while (node->kind == MATH_IS_NEGATIVE || node->kind == MATH_IS_SIGNED)
        node = node->first;
    switch (node->kind) {
    case MATH_IS_NUMBER: return true;
    case MATH_IS_SUM: return node->is_mixed;
    case MATH_IS_QUOTIENT: return is_signed_number(node->first) && is_signed_number(node->last);
    case MATH_IS_POWER: return is_ten(node->first) && is_integer(node->last);
    case MATH_IS_PRODUCT:
        return node->count == 2 && is_signed_number(node->first) && node->last->kind == MATH_IS_POWER &&
               is_plain_number(node->last);
    default: return false;
    }
}

enum {
    WORK_ROOT = 1,
    WORK_TRIGONOMETRY = 2,
    WORK_LOGARITHM = 4,
    WORK_COUNTING = 8,
    WORK_LIMIT = 16,
    WORK_ROUNDING = 32
};

static unsigned work_of_call(struct slice name)
{
    static const struct {
        const char *name;
        unsigned work;
    } rows[] = {{"log", WORK_LOGARITHM}, {"lg", WORK_LOGARITHM}, {"!", WORK_COUNTING},     {"binom", WORK_COUNTING},
                {"gcd", WORK_COUNTING},  {"lcm", WORK_COUNTING}, {"min", WORK_COUNTING},   {"max", WORK_COUNTING},
                {"sum", WORK_LIMIT},     {"prod", WORK_LIMIT},   {"int", WORK_LIMIT},      {"lim", WORK_LIMIT},
                {"det", WORK_LIMIT},     {"abs", WORK_ROUNDING}, {"floor", WORK_ROUNDING}, {"ceil", WORK_ROUNDING}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (slice_is(name, rows[i].name))
            return rows[i].work;
    return slice_is(name, "_") || slice_is(name, "'") ? 0 : WORK_TRIGONOMETRY;
}

static unsigned work_in(const struct math_node *node)
{
    unsigned work = node->kind == MATH_IS_CALL ? work_of_call(node->text) : 0;
    if (node->kind == MATH_IS_POWER && !is_integer(node->last) && !has_letters(node->last))
        work = WORK_ROOT;
    for (const struct math_node *child = node->first; child; child = child->next)
        work |= work_in(child);
    return work;
}

static bool is_finished(const struct math_node *wanted, const struct math_node *given)
{
    if (is_plain_number(wanted))
        return is_plain_number(given);
    unsigned work = work_in(wanted);
    return (work_in(given) & ~(work ? work | WORK_ROOT : 0)) == 0;
}

/* ---- exactly, and modulo a prime --------------------------------------------------------------------- */

static struct math_point point_of(struct comparison *comparison, struct view view, unsigned round, bool negative)
{
    return (struct math_point){
        .round = round, .minus = view.sign == SIGN_MINUS, .negative = negative, .fuel = &comparison->fuel};
}

enum answer { YES, NO, UNKNOWN };

static enum answer same_exactly(struct comparison *comparison, struct view a, struct view b)
{
    struct math_point at_a = point_of(comparison, a, 0, false), at_b = point_of(comparison, b, 0, false);
    struct math_fraction left, right;
    if (!math_exact(a.node, &at_a, &left) || !math_exact(b.node, &at_b, &right))
        return UNKNOWN;
    return left.above == right.above && left.below == right.below ? YES : NO;
}

static enum answer same_residues(struct comparison *comparison, struct view a, struct view b)
{
    bool is_opaque = false;
    for (unsigned round = 1; round <= RESIDUE_POINTS; round++) {
        struct math_point at_a = point_of(comparison, a, round, false), at_b = point_of(comparison, b, round, false);
        uint64_t left, right;
        if (!math_residue(a.node, &at_a, &left) || !math_residue(b.node, &at_b, &right))
            return UNKNOWN;
        is_opaque |= at_a.is_opaque || at_b.is_opaque;
        if (left != right)
            return is_opaque ? UNKNOWN : NO;
    }
    return YES;
}

/* ---- as numbers with errors ------------------------------------------------------------------------------ */

/* Equal as far as they are known, and well known. */
static bool is_near(struct math_real a, struct math_real b)
{
    long double off = cabsl(a.value - b.value), error = a.error + b.error, size = fmaxl(cabsl(a.value), cabsl(b.value));
    return off <= error && (error <= 1e-12L * size || error <= 1e-15L);
}

static bool same_at(struct comparison *comparison, struct view a, struct view b, unsigned round, bool negative,
                    bool *ret_known)
{
    struct math_point at_a = point_of(comparison, a, round, negative), at_b = point_of(comparison, b, round, negative);
    struct math_real left, right;
    *ret_known = math_real(a.node, &at_a, &left) && math_real(b.node, &at_b, &right);
    if (negative && *ret_known && (left.is_branch || right.is_branch))
        *ret_known = false;
    return *ret_known && is_near(left, right);
}

static bool same_as_numbers(struct comparison *comparison, struct view a, struct view b)
{
    bool known;
    unsigned points = has_letters(a.node) || has_letters(b.node) ? REAL_POINTS : 1, sure = 0;
    for (unsigned round = 1; round <= points; round++) {
        bool is_same = same_at(comparison, a, b, round, false, &known);
        if (known && !is_same)
            return false;
        sure += known;
    }
    for (unsigned round = 1; round <= points && points > 1; round++) {
        bool is_same = same_at(comparison, a, b, round + REAL_POINTS, true, &known);
        if (known && !is_same)
            return false;
        sure += known;
    }
    return sure > points / 2;
}

bool values_same(struct comparison *comparison, struct view a, struct view b)
{
    enum answer answer = same_exactly(comparison, a, b);
    if (answer == UNKNOWN)
        answer = same_residues(comparison, a, b);
    return answer == YES || (answer == UNKNOWN && same_as_numbers(comparison, a, b));
}

/* ---- near enough --------------------------------------------------------------------------------------------- */

static bool is_decimal(math_int128 below)
{
    while (below % 2 == 0)
        below /= 2;
    while (below % 5 == 0)
        below /= 5;
    return below == 1;
}

/*
 * How far a number of twelve digits and more may be off that a machine wrote down: one in its last digit; but nothing
 * where the other has a decimal of its own that ends.
 */
static long double last_digit(struct comparison *comparison, struct view written, struct view other)
{
    struct math_point at = point_of(comparison, other, 0, false);
    struct math_fraction exact;
    const struct math_node *node = written.node;
    while (node->kind == MATH_IS_NEGATIVE)
        node = node->first;
    if (node->kind != MATH_IS_NUMBER || node->number.is_whole || node->number.significant < DIGITS_SURE)
        return 0;
    if (math_exact(other.node, &at, &exact) && is_decimal(exact.below))
        return 0;
    return powl(10, (long double)node->number.last_power) * (1 + 1e-6L);
}

static bool near_enough(struct comparison *comparison, struct view wanted, struct view given)
{
    struct math_point at_wanted = point_of(comparison, wanted, 1, false),
                      at_given = point_of(comparison, given, 1, false);
    struct math_real left, right;
    if (has_letters(wanted.node) || has_letters(given.node) || !math_real(wanted.node, &at_wanted, &left) ||
        !math_real(given.node, &at_given, &right))
        return false;
    long double size = cabsl(left.value), off = cabsl(left.value - right.value);
    long double allowed = fmaxl((long double)comparison->options->absolute,
                                (long double)comparison->options->relative * size);
    long double digit = fmaxl(last_digit(comparison, wanted, given), last_digit(comparison, given, wanted));
    return (allowed > 0 || digit > 0) && off <= fmaxl(allowed * (1 + 1e-12L), digit);
}

bool compare_values(struct comparison *comparison, struct view wanted, struct view given)
{
    if (!values_same(comparison, wanted, given) && !near_enough(comparison, wanted, given))
        return false;
    if (is_finished(wanted.node, given.node))
        return true;
    comparison->is_unfinished = true;
    return false;
}

/* ---- multiples ------------------------------------------------------------------------------------------------- */

/* first - last of a relation at a point. */
static bool difference_at(struct comparison *comparison, struct view relation, unsigned round, struct math_real *ret)
{
    struct math_point at = point_of(comparison, relation, round, false);
    struct math_real left, right;
    if (!math_real(relation.node->first, &at, &left) || !math_real(relation.node->last, &at, &right))
        return false;
    *ret = (struct math_real){left.value - right.value,
                              left.error + right.error + 1e-18L * (cabsl(left.value) + cabsl(right.value)), false};
    return cabsl(ret->value) > 64 * ret->error;
}

bool differences_proportional(struct comparison *comparison, struct view wanted, struct view given, bool is_positive)
{
    struct math_real ratio = {0};
    for (unsigned round = 1; round <= REAL_POINTS; round++) {
        struct math_real left, right;
        if (!difference_at(comparison, wanted, round, &left) || !difference_at(comparison, given, round, &right))
            return false;
        long double complex value = left.value / right.value;
        struct math_real here = {value, 2 * (left.error + cabsl(value) * right.error) / cabsl(right.value), false};
        if (round > 1 && !is_near(ratio, here))
            return false;
        ratio = here;
    }
    return fabsl(cimagl(ratio.value)) <= ratio.error && (!is_positive || creall(ratio.value) > 0);
}
