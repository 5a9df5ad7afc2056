#include "workers/evaluators/math/compare/real.h"

#include <math.h>

#include "workers/evaluators/math/field.h"

typedef long double complex number;

static const long double epsilon = 4.4e-19L, pi = 3.14159265358979323846264338327950288L;

static struct math_real made(number value, long double error, bool is_branch)
{
    return (struct math_real){value, error + epsilon * cabsl(value), is_branch};
}

static bool is_real(struct math_real a) { return fabsl(cimagl(a.value)) <= a.error; }

/* ---- arithmetic ---------------------------------------------------------------------------------- */

/* A term that is lost beside the other, as in 10^30 + 1, leaves a sum that is not known. */
static struct math_real add(struct math_real a, struct math_real b)
{
    struct math_real sum = made(a.value + b.value, a.error + b.error, a.is_branch || b.is_branch);
    long double size_a = cabsl(a.value), size_b = cabsl(b.value), least = fminl(size_a, size_b);
    sum.error += epsilon * (size_a + size_b);
    if (size_a > a.error && size_b > b.error && sum.error > 1e-3L * least)
        sum.error = INFINITY;
    return sum;
}

static struct math_real multiply(struct math_real a, struct math_real b)
{
    return made(a.value * b.value, cabsl(a.value) * b.error + cabsl(b.value) * a.error + a.error * b.error,
                a.is_branch || b.is_branch);
}

static bool divide(struct math_real a, struct math_real b, struct math_real *ret)
{
    long double size = cabsl(b.value);
    if (size <= 8 * b.error || size == 0)
        return false;
    number value = a.value / b.value;
    *ret = made(value, 2 * (a.error + cabsl(value) * b.error) / size, a.is_branch || b.is_branch);
    return true;
}

static struct math_real negate(struct math_real a)
{
    a.value = -a.value;
    return a;
}

/* ---- powers ------------------------------------------------------------------------------------------ */

static struct math_real exponential(struct math_real a)
{
    number value = cexpl(a.value);
    return made(value, 4 * cabsl(value) * (a.error + epsilon * cabsl(a.value)), a.is_branch);
}

static bool logarithm(struct math_real a, struct math_real *ret)
{
    long double size = cabsl(a.value);
    if (size <= 8 * a.error || size == 0)
        return false;
    bool is_branch = !is_real(a) || creall(a.value) < 0;
    *ret = made(clogl(is_branch ? a.value : creall(a.value)), 2 * a.error / size, a.is_branch || is_branch);
    return true;
}

static struct math_real whole_power(struct math_real base, long exponent)
{
    struct math_real power = {1, 0, base.is_branch};
    for (; exponent; exponent >>= 1, base = multiply(base, base))
        if (exponent & 1)
            power = multiply(power, base);
    return power;
}

/* An exponent known exactly: whole ones are multiplied out, and x^{a/3} of x < 0 is real. */
static bool rational_power(struct math_real base, struct math_fraction exponent, struct math_real *ret)
{
    if (exponent.below == 1 && exponent.above >= -4096 && exponent.above <= 4096) {
        long whole = (long)exponent.above;
        struct math_real one = {1, 0, false}, power = whole_power(base, whole < 0 ? -whole : whole);
        *ret = power;
        return whole >= 0 ? whole > 0 || cabsl(base.value) > base.error : divide(one, power, ret);
    }
    struct math_real size = base, root, times = {(long double)exponent.above / (long double)exponent.below, 0, false};
    bool is_negative = is_real(base) && creall(base.value) < 0;
    if (cabsl(base.value) <= base.error) { /* the root of 0 */
        *ret = (struct math_real){0, powl(base.error, creall(times.value)), base.is_branch};
        return exponent.above > 0;
    }
    if (is_negative && exponent.below % 2 != 0)
        size = negate(base);
    times.error = epsilon * cabsl(times.value);
    if (!logarithm(size, &root))
        return false;
    *ret = exponential(multiply(times, root));
    if (is_negative && exponent.below % 2 != 0 && exponent.above % 2 != 0)
        *ret = negate(*ret);
    return true;
}

static bool real_power(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    struct math_real base, exponent, root;
    struct math_fraction exact;
    if (!math_real(node->first, point, &base))
        return false;
    if (math_exact(node->last, point, &exact))
        return rational_power(base, exact, ret);
    if (!math_real(node->last, point, &exponent) || !logarithm(base, &root))
        return false;
    *ret = exponential(multiply(exponent, root));
    return true;
}

/* ---- functions ---------------------------------------------------------------------------------------- */

static bool sine(struct math_real a, bool is_cosine, struct math_real *ret)
{
    if (fabsl(cimagl(a.value)) > 1000 || cabsl(a.value) > 1e12L)
        return false;
    number value = is_cosine ? ccosl(a.value) : csinl(a.value);
    number slope = is_cosine ? csinl(a.value) : ccosl(a.value);
    *ret = made(value, 2 * (cabsl(slope) + epsilon) * (a.error + epsilon * cabsl(a.value)) + epsilon, a.is_branch);
    return true;
}

static bool trigonometric(struct slice name, struct math_real a, struct math_real *ret)
{
    struct math_real sin, cos, one = {1, 0, false};
    if (!sine(a, false, &sin) || !sine(a, true, &cos))
        return false;
    if (slice_is(name, "sin"))
        *ret = sin;
    else if (slice_is(name, "cos"))
        *ret = cos;
    else if (slice_is(name, "tan"))
        return divide(sin, cos, ret);
    else if (slice_is(name, "cot"))
        return divide(cos, sin, ret);
    else if (slice_is(name, "sec"))
        return divide(one, cos, ret);
    else if (slice_is(name, "csc"))
        return divide(one, sin, ret);
    else
        return false;
    return true;
}

/* sinh, cosh, tanh by exponentials. */
static bool hyperbolic(struct slice name, struct math_real a, struct math_real *ret)
{
    struct math_real half = {0.5L, 0, false}, up = exponential(a), down = exponential(negate(a));
    struct math_real sinh = multiply(half, add(up, negate(down))), cosh = multiply(half, add(up, down));
    if (slice_is(name, "sinh"))
        *ret = sinh;
    else if (slice_is(name, "cosh"))
        *ret = cosh;
    else
        return slice_is(name, "tanh") && divide(sinh, cosh, ret);
    return true;
}

/* Of real arguments alone. */
static bool inverse(struct slice name, struct math_real a, struct math_real *ret)
{
    long double x = creall(a.value), slope;
    if (!is_real(a))
        return false;
    if (slice_is(name, "arctan")) {
        *ret = made(atanl(x), a.error, a.is_branch);
        return true;
    }
    if (fabsl(x) > 1)
        return false;
    slope = 1 / sqrtl(1 - x * x + 1e-12L);
    if (slice_is(name, "arcsin"))
        *ret = made(asinl(x), 2 * slope * a.error + epsilon, a.is_branch);
    else if (slice_is(name, "arccos"))
        *ret = made(acosl(x), 2 * slope * a.error + epsilon, a.is_branch);
    else
        return false;
    return true;
}

static bool log_call(const struct math_node *node, struct math_point *point, struct math_real a, struct math_real *ret)
{
    struct math_real base = {10, 0, false}, above, below;
    if (!logarithm(a, &above))
        return false;
    *ret = above;
    if (node->count == 1 && slice_is(node->text, "log"))
        return true;
    if (node->count == 2 && !math_real(node->last, point, &base))
        return false;
    return logarithm(base, &below) && divide(above, below, ret);
}

static bool absolute(struct math_real a, struct math_real *ret)
{
    *ret = made(cabsl(a.value), a.error, a.is_branch);
    return true;
}

/* floor and ceil, where the error cannot decide which. */
static bool rounded(struct slice name, struct math_real a, struct math_real *ret)
{
    long double x = creall(a.value), value = slice_is(name, "floor") ? floorl(x) : ceill(x);
    if (!is_real(a) || fabsl(x - roundl(x)) <= a.error)
        return false;
    *ret = (struct math_real){value, 0, a.is_branch};
    return true;
}

/* ---- names -------------------------------------------------------------------------------------------------- */

/* Between 1/2 and 5/2, or minus that. */
static struct math_real from_residue(uint64_t residue, const struct math_point *point)
{
    long double value = 0.5L + 2 * (long double)residue / (long double)FIELD_PRIME;
    bool is_negative = point->negative && (residue & 4);
    return (struct math_real){is_negative ? -value : value, 0, false};
}

static bool real_opaque(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    uint64_t residue;
    if (!math_residue(node, point, &residue))
        return false;
    *ret = from_residue(residue, point);
    return true;
}

static bool real_name(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    if (slice_is(node->text, "pi"))
        *ret = made(pi, 0, false);
    else if (slice_is(node->text, "e"))
        *ret = made(expl(1), 0, false);
    else if (slice_is(node->text, "i"))
        *ret = (struct math_real){I, 0, false};
    else if (slice_is(node->text, "infty"))
        return false;
    else
        return real_opaque(node, point, ret);
    return true;
}

static bool real_call(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    static const char *const real_functions[] = {"sin",  "cos",  "tan",  "cot",    "sec",    "csc",
                                                 "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan",
                                                 "log",  "lg",   "abs",  "floor",  "ceil"};
    bool is_known = false;
    for (size_t i = 0; i < sizeof(real_functions) / sizeof(real_functions[0]); i++)
        is_known |= slice_is(node->text, real_functions[i]);
    if (!is_known)
        return real_opaque(node, point, ret);
    struct math_real a;
    if (!math_real(node->first, point, &a))
        return false;
    if (slice_is(node->text, "log") || slice_is(node->text, "lg"))
        return log_call(node, point, a, ret);
    if (node->count != 1)
        return false;
    if (slice_is(node->text, "abs"))
        return absolute(a, ret);
    if (slice_is(node->text, "floor") || slice_is(node->text, "ceil"))
        return rounded(node->text, a, ret);
    return trigonometric(node->text, a, ret) || hyperbolic(node->text, a, ret) || inverse(node->text, a, ret);
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static bool real_all(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    bool is_sum = node->kind == MATH_IS_SUM;
    struct math_real all = {is_sum ? 0 : 1, 0, false}, one;
    for (const struct math_node *child = node->first; child; child = child->next) {
        if (!math_real(child, point, &one))
            return false;
        all = is_sum ? add(all, one) : multiply(all, one);
    }
    *ret = all;
    return true;
}

static bool real_of_child(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    struct math_real scale = {1, 0, false}, child;
    if (!math_real(node->first, point, &child))
        return false;
    if (node->kind == MATH_IS_PERCENT)
        scale = made(0.01L, 0, false);
    else if (node->kind == MATH_IS_UNIT)
        scale = made(pi / 180, 0, false);
    else if (node->kind == MATH_IS_NEGATIVE || point->minus == (node->sign == '+'))
        scale.value = -1;
    *ret = multiply(scale, child);
    return true;
}

static bool real_any(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    struct math_real a, b;
    switch (node->kind) {
    case MATH_IS_NUMBER: *ret = made(node->number.approximate, 0, false); return true;
    case MATH_IS_NAME: return real_name(node, point, ret);
    case MATH_IS_SUM:
    case MATH_IS_PRODUCT: return real_all(node, point, ret);
    case MATH_IS_QUOTIENT:
        return math_real(node->first, point, &a) && math_real(node->last, point, &b) && divide(a, b, ret);
    case MATH_IS_POWER: return real_power(node, point, ret);
    case MATH_IS_NEGATIVE:
    case MATH_IS_SIGNED:
    case MATH_IS_PERCENT: return real_of_child(node, point, ret);
    case MATH_IS_UNIT: return slice_is(node->text, "degree") && real_of_child(node, point, ret);
    case MATH_IS_CALL: return real_call(node, point, ret);
    case MATH_IS_WORDS: return node->first ? math_real(node->first, point, ret) : false;
    default: return false;
    }
}

bool math_real(const struct math_node *node, struct math_point *point, struct math_real *ret)
{
    if ((*point->fuel)-- <= 0 || !real_any(node, point, ret))
        return false;
    return isfinite(creall(ret->value)) && isfinite(cimagl(ret->value)) && isfinite(ret->error);
}
