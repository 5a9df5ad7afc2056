#include "workers/evaluators/math/compare/residue.h"

#include "workers/evaluators/math/field.h"

enum { FACTORIAL_MAX = 5000, POWER_MAX = 4096 };

/* ---- exactly ------------------------------------------------------------------------------------ */

static bool exact_power(struct math_fraction base, struct math_fraction exponent, struct math_fraction *ret)
{
    if (!base.is_exact || !exponent.is_exact || exponent.below != 1 || exponent.above > POWER_MAX ||
        exponent.above < -POWER_MAX)
        return false;
    struct math_fraction power = {true, 1, 1};
    for (math_int128 i = exponent.above < 0 ? -exponent.above : exponent.above; i > 0 && power.is_exact; i--)
        power = math_fraction_multiply(power, base);
    *ret = exponent.above < 0 ? math_fraction_divide((struct math_fraction){true, 1, 1}, power) : power;
    return ret->is_exact;
}

static bool exact_all(const struct math_node *node, struct math_point *point, struct math_fraction *ret)
{
    bool is_sum = node->kind == MATH_IS_SUM;
    struct math_fraction all = {true, !is_sum, 1}, one;
    for (const struct math_node *child = node->first; child; child = child->next) {
        if (!math_exact(child, point, &one))
            return false;
        all = is_sum ? math_fraction_add(all, one) : math_fraction_multiply(all, one);
    }
    *ret = all;
    return all.is_exact;
}

bool math_exact(const struct math_node *node, struct math_point *point, struct math_fraction *ret)
{
    struct math_fraction a, b;
    if ((*point->fuel)-- <= 0)
        return false;
    switch (node->kind) {
    case MATH_IS_NUMBER:
        *ret = (struct math_fraction){node->number.is_exact, node->number.above, node->number.below};
        break;
    case MATH_IS_SUM:
    case MATH_IS_PRODUCT: return exact_all(node, point, ret);
    case MATH_IS_NEGATIVE:
        if (!math_exact(node->first, point, &a))
            return false;
        *ret = math_fraction_multiply(a, (struct math_fraction){true, -1, 1});
        break;
    case MATH_IS_QUOTIENT:
        if (!math_exact(node->first, point, &a) || !math_exact(node->last, point, &b))
            return false;
        *ret = math_fraction_divide(a, b);
        break;
    case MATH_IS_POWER:
        return math_exact(node->first, point, &a) && math_exact(node->last, point, &b) && exact_power(a, b, ret);
    default: return false;
    }
    return ret->is_exact;
}

/* ---- modulo a prime ------------------------------------------------------------------------------- */

/* Its kind, its text and the values of its children, in order or in any. */
static bool residue_opaque(const struct math_node *node, struct math_point *point, bool in_any_order, uint64_t *ret)
{
    uint64_t all = field_mix_text(node->kind + 977, node->text), one;
    all = field_mix(field_mix(all, (uint64_t)node->sign * 256 + (uint64_t)node->close), node->columns);
    if (!in_any_order)
        all = field_mix(all, node->count);
    for (const struct math_node *child = node->first; child; child = child->next) {
        if (!math_residue(child, point, &one))
            return false;
        all = in_any_order ? field_add(all, field_mix(one, 1)) : field_mix(all, one);
    }
    point->is_opaque = true;
    *ret = all;
    return true;
}

static uint64_t residue_name(const struct math_node *node, const struct math_point *point)
{
    if (slice_is(node->text, "i"))
        return FIELD_ROOT_OF_MINUS_ONE;
    return field_mix_text(field_mix(7, point->round), node->text);
}

static bool residue_all(const struct math_node *node, struct math_point *point, uint64_t *ret)
{
    bool is_sum = node->kind == MATH_IS_SUM;
    uint64_t all = !is_sum, one;
    for (const struct math_node *child = node->first; child; child = child->next) {
        if (!math_residue(child, point, &one))
            return false;
        all = is_sum ? field_add(all, one) : field_multiply(all, one);
    }
    *ret = all;
    return true;
}

static bool residue_quotient(const struct math_node *node, struct math_point *point, uint64_t *ret)
{
    uint64_t above, below;
    if (!math_residue(node->first, point, &above) || !math_residue(node->last, point, &below) || below == 0)
        return false;
    *ret = field_multiply(above, field_inverse(below));
    return true;
}

static bool residue_power(const struct math_node *node, struct math_point *point, uint64_t *ret)
{
    struct math_fraction exponent;
    uint64_t base;
    if (!math_exact(node->last, point, &exponent) || exponent.below != 1 || exponent.above > INT64_MAX ||
        exponent.above < -INT64_MAX)
        return residue_opaque(node, point, false, ret);
    if (!math_residue(node->first, point, &base) || (base == 0 && exponent.above <= 0))
        return false;
    bool is_negative = exponent.above < 0;
    uint64_t power = field_power(base, (uint64_t)(is_negative ? -exponent.above : exponent.above));
    *ret = is_negative ? field_inverse(power) : power;
    return true;
}

/* A whole number up to FACTORIAL_MAX; -1: it is none. */
static int small_whole(const struct math_node *node, struct math_point *point)
{
    struct math_fraction value;
    if (!math_exact(node, point, &value) || value.below != 1 || value.above < 0 || value.above > FACTORIAL_MAX)
        return -1;
    return (int)value.above;
}

static bool residue_falling(int from, int count, struct math_point *point, uint64_t *ret)
{
    *ret = 1;
    *point->fuel -= count / 16;
    for (int i = 0; i < count; i++)
        *ret = field_multiply(*ret, (uint64_t)(from - i));
    return true;
}

static bool residue_call(const struct math_node *node, struct math_point *point, uint64_t *ret)
{
    bool is_factorial = slice_is(node->text, "!"), is_binomial = slice_is(node->text, "binom");
    int n = is_factorial || is_binomial ? small_whole(node->first, point) : -1;
    int k = is_binomial ? small_whole(node->last, point) : 0;
    if (n < 0 || k < 0)
        return residue_opaque(node, point, slice_is(node->text, "gcd") || slice_is(node->text, "cap"), ret);
    if (is_factorial)
        return residue_falling(n, n, point, ret);
    if (k > n) {
        *ret = 0;
        return true;
    }
    uint64_t below;
    residue_falling(n, k, point, ret);
    residue_falling(k, k, point, &below);
    *ret = field_multiply(*ret, field_inverse(below));
    return true;
}

bool math_residue(const struct math_node *node, struct math_point *point, uint64_t *ret)
{
    if ((*point->fuel)-- <= 0)
        return false;
    switch (node->kind) {
    case MATH_IS_NUMBER: *ret = node->number.residue; return true;
    case MATH_IS_NAME: *ret = residue_name(node, point); return true;
    case MATH_IS_SUM:
    case MATH_IS_PRODUCT: return residue_all(node, point, ret);
    case MATH_IS_QUOTIENT: return residue_quotient(node, point, ret);
    case MATH_IS_POWER: return residue_power(node, point, ret);
    case MATH_IS_SIGNED:
    case MATH_IS_NEGATIVE:
        if (!math_residue(node->first, point, ret))
            return false;
        if (node->kind == MATH_IS_NEGATIVE || point->minus == (node->sign == '+'))
            *ret = field_negate(*ret);
        return true;
    case MATH_IS_PERCENT:
        if (!math_residue(node->first, point, ret))
            return false;
        *ret = field_multiply(*ret, field_inverse(100));
        return true;
    case MATH_IS_CALL: return residue_call(node, point, ret);
    case MATH_IS_SET:
    case MATH_IS_LIST:
    case MATH_IS_UNION: return residue_opaque(node, point, true, ret);
    case MATH_IS_WORDS:
        if (node->first)
            return math_residue(node->first, point, ret);
        return residue_opaque(node, point, false, ret);
    default: return residue_opaque(node, point, false, ret);
    }
}
