#include "workers/evaluators/math/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "workers/evaluators/math/normal.h"

enum { EXPONENT_MAX = 4000 };

static const char digits[] = "0123456789";

/* ---- rationals ---------------------------------------------------------------------------- */

struct rational {
    bool is_exact;
    math_int128 above, below;
    long double approximate;
};

static math_int128 common_divisor(math_int128 a, math_int128 b)
{
    while (b != 0) {
        math_int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static void rational_reduce(struct rational *value)
{
    if (!value->is_exact)
        return;
    math_int128 divisor = common_divisor(value->above, value->below); /* below is never 0 */
    value->above /= divisor;
    value->below /= divisor;
    if (value->below < 0) {
        value->above = -value->above;
        value->below = -value->below;
    }
}

static struct rational rational_multiply(struct rational a, struct rational b)
{
    struct rational product = {.approximate = a.approximate * b.approximate};
    product.is_exact = a.is_exact && b.is_exact && !__builtin_mul_overflow(a.above, b.above, &product.above) &&
                       !__builtin_mul_overflow(a.below, b.below, &product.below);
    rational_reduce(&product);
    return product;
}

/* b is not zero. */
static struct rational rational_divide(struct rational a, struct rational b)
{
    struct rational inverse = {b.is_exact, b.below, b.above, 1 / b.approximate};
    return rational_multiply(a, inverse);
}

static struct rational rational_add(struct rational a, struct rational b)
{
    struct rational sum = {.approximate = a.approximate + b.approximate};
    math_int128 left, right;
    sum.is_exact = a.is_exact && b.is_exact && !__builtin_mul_overflow(a.above, b.below, &left) &&
                   !__builtin_mul_overflow(b.above, a.below, &right) &&
                   !__builtin_add_overflow(left, right, &sum.above) &&
                   !__builtin_mul_overflow(a.below, b.below, &sum.below);
    rational_reduce(&sum);
    return sum;
}

static struct rational rational_power_of_ten(long exponent)
{
    struct rational power = {true, 1, 1, powl(10, (long double)exponent)};
    math_int128 *grows = exponent < 0 ? &power.below : &power.above;
    for (long i = labs(exponent); i > 0 && power.is_exact; i--)
        power.is_exact = !__builtin_mul_overflow(*grows, (math_int128)10, grows);
    return power;
}

static struct rational rational_with_sign(struct rational value, int sign)
{
    if (value.is_exact)
        value.above *= sign;
    value.approximate *= sign;
    return value;
}

static bool is_zero(struct rational value) { return value.is_exact ? value.above == 0 : value.approximate == 0; }

/* ---- reading ------------------------------------------------------------------------------ */

static int read_sign(const char **at)
{
    int sign = 1;
    for (; **at == '+' || **at == '-'; (*at)++)
        sign = **at == '-' ? -sign : sign;
    return sign;
}

/* 12, 12.5, .5 and 12. ; *ret_whole when it has no point. */
static bool read_decimal(const char **at, struct rational *ret, bool *ret_whole)
{
    struct rational value = {.is_exact = true, .below = 1};
    long places = 0;
    bool point = false, any = false;
    const char *p = *at;
    for (; isdigit((unsigned char)*p) || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        places += point;
        value.approximate = value.approximate * 10 + (*p - '0');
        value.is_exact = value.is_exact && !__builtin_mul_overflow(value.above, (math_int128)10, &value.above) &&
                         !__builtin_add_overflow(value.above, (math_int128)(*p - '0'), &value.above);
    }
    if (!any || places > EXPONENT_MAX)
        return false;
    *at = p;
    *ret = places ? rational_multiply(value, rational_power_of_ten(-places)) : value;
    *ret_whole = !point;
    return true;
}

static bool read_exponent(const char **at, long *ret)
{
    const char *p = *at;
    bool braces = *p == '{';
    p += braces;
    int sign = read_sign(&p);
    size_t len = strspn(p, digits);
    if (len == 0 || len > 4 || (braces && p[len] != '}'))
        return false;
    *ret = sign * strtol(p, NULL, 10);
    *at = p + len + braces;
    return labs(*ret) <= EXPONENT_MAX;
}

/* e-3 and *10^{-3}; nothing at all is fine too. */
static void read_scale(const char **at, struct rational *value)
{
    const char *p = *at;
    long exponent;
    if (strncmp(p, "*10^", 4) == 0)
        p += 4;
    else if ((*p == 'e' || *p == 'E') && p[1] != '{')
        p += 1;
    else
        return;
    if (!read_exponent(&p, &exponent))
        return;
    *value = rational_multiply(*value, rational_power_of_ten(exponent));
    *at = p;
}

/* /4, /(-4) */
static bool read_divisor(const char **at, struct rational *value)
{
    const char *p = *at + 1;
    bool parenthesis = *p == '(', whole;
    p += parenthesis;
    int sign = read_sign(&p);
    struct rational divisor;
    if (!read_decimal(&p, &divisor, &whole) || is_zero(divisor) || (parenthesis && *p != ')'))
        return false;
    *value = rational_divide(*value, rational_with_sign(divisor, sign));
    *at = p + parenthesis;
    return true;
}

/* " 1/2" after a whole number. */
static bool read_mixed(const char **at, struct rational *value)
{
    const char *p = *at + 1;
    struct rational part;
    bool whole;
    if (!read_decimal(&p, &part, &whole) || !whole || *p != '/' || !read_divisor(&p, &part))
        return false;
    *value = rational_add(*value, part);
    *at = p;
    return true;
}

/* ---- units -------------------------------------------------------------------------------- */

/* clang-format off */
/* Units that may stand without \text{}; the first of a row is its name. Plurals are understood. */
static const char *const units[][4] = {
    {"cm", "centimeter", "centimetre"}, {"mm", "millimeter", "millimetre"},
    {"km", "kilometer", "kilometre"},   {"m", "meter", "metre"},
    {"in", "inch", "inche"},            {"ft", "foot", "feet"},
    {"mile", "mi"},                     {"yard", "yd"},
    {"kg", "kilogram"},                 {"g", "gram"},
    {"pound", "lb"},                    {"ounce", "oz"},
    {"second", "sec", "s"},             {"minute", "min"},
    {"hour", "hr", "h"},                {"day"},
    {"week"},                           {"month"},
    {"year", "yr"},                     {"degree", "deg"},
    {"radian", "rad"},                  {"dollar", "usd"},
    {"cent"},                           {"unit"},
    {"squareunit", "sq.unit"},          {"cubicunit"},
    {"liter", "litre", "l"},            {"mph"},
    {"point"},                          {"people", "person"},
    {"way"},                            {"percent"},
};
/* clang-format on */

/* The row's name for a word, or NULL. */
static const char *unit_name(const char *word, size_t len)
{
    size_t singular = len > 2 && word[len - 1] == 's' ? len - 1 : len;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        for (size_t k = 0; k < 4 && units[i][k]; k++) {
            size_t known = strlen(units[i][k]);
            if ((known == len || known == singular) && strncasecmp(units[i][k], word, known) == 0)
                return units[i][0];
        }
    return NULL;
}

/* One word of a unit, written to `unit` under its row's name, as it stands when `any`. */
static bool read_unit_word(const char **at, bool any, char *unit, size_t size)
{
    size_t len = 0, used = strlen(unit);
    while (isalpha((unsigned char)(*at)[len]) || (*at)[len] == '.')
        len++;
    const char *name = len ? unit_name(*at, len) : NULL;
    if (len == 0 || (!name && !any))
        return false;
    int wrote = name ? snprintf(unit + used, size - used, "%s", name)
                     : snprintf(unit + used, size - used, "%.*s", (int)len, *at);
    *at += len;
    return wrote >= 0 && (size_t)wrote < size - used;
}

/* All that is left: cm, m/s, cm^2, \text{anything}^2; `any` is true inside \text{}. */
static bool read_unit(const char *at, char *unit, size_t size)
{
    bool any = false;
    unit[0] = '\0';
    while (*at) {
        size_t used = strlen(unit);
        if (*at == MATH_TEXT_OPEN || *at == MATH_TEXT_CLOSE) {
            any = *at++ == MATH_TEXT_OPEN;
            continue;
        }
        if (isalpha((unsigned char)*at)) {
            if (!read_unit_word(&at, any, unit, size))
                return false;
            continue;
        }
        if (used + 1 >= size || (!any && (used == 0 || !strchr("/^0123456789{}", *at))))
            return false;
        unit[used] = *at++;
        unit[used + 1] = '\0';
    }
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static struct slice whole_digits(const char *from, const char *to)
{
    while (from + 1 < to && *from == '0')
        from++;
    return slice_of(from, (size_t)(to - from));
}

static bool read_value(const char **at, struct rational *value, struct math_number *ret)
{
    bool whole;
    const char *start = *at;
    if (!read_decimal(at, value, &whole))
        return false;
    const char *end = *at;
    if (**at == ' ')
        return whole && read_mixed(at, value);
    read_scale(at, value);
    if (**at == '/')
        return (isdigit((unsigned char)(*at)[1]) || strchr("(.", (*at)[1])) && read_divisor(at, value);
    if (whole && *at == end)
        ret->whole = whole_digits(start, end);
    return true;
}

bool math_number_parse(const char *text, struct math_number *ret)
{
    struct rational value;
    *ret = (struct math_number){0};
    int sign = read_sign(&text);
    if (!read_value(&text, &value, ret) || !isfinite(value.approximate))
        return false;
    ret->is_percent = *text == '%';
    text += ret->is_percent;
    if (!read_unit(text, ret->unit, sizeof(ret->unit)))
        return false;
    if (strcmp(ret->unit, "percent") == 0) {
        ret->is_percent = true;
        ret->unit[0] = '\0';
    }
    value = rational_with_sign(value, sign);
    ret->is_exact = value.is_exact;
    ret->above = value.above;
    ret->below = value.below;
    ret->approximate = value.approximate;
    ret->is_negative = sign < 0;
    return true;
}

static bool values_equal(const struct math_number *a, const struct math_number *b, long double scale)
{
    long double left = a->approximate * scale, right = b->approximate;
    return fabsl(left - right) <= 1e-9L * fmaxl(fabsl(left), fabsl(right));
}

static bool as_written_equal(const struct math_number *a, const struct math_number *b)
{
    if (a->is_exact && b->is_exact)
        return a->above == b->above && a->below == b->below;
    if (a->whole.len && b->whole.len)
        return a->is_negative == b->is_negative && slice_equal(a->whole, b->whole);
    return values_equal(a, b, 1);
}

/* a percent of one side against a plain number of the other: 50% and 0.5. */
static bool percent_equal(const struct math_number *percent, const struct math_number *plain)
{
    struct rational hundred = {true, 100, 1, 100};
    struct rational value = {percent->is_exact, percent->above, percent->below, percent->approximate};
    value = rational_divide(value, hundred);
    struct math_number part = {
        .is_exact = value.is_exact, .above = value.above, .below = value.below, .approximate = value.approximate};
    return as_written_equal(&part, plain);
}

bool math_number_equal(const struct math_number *a, const struct math_number *b)
{
    if (a->unit[0] && b->unit[0] && strcmp(a->unit, b->unit) != 0)
        return false;
    if (as_written_equal(a, b))
        return true;
    if (a->is_percent == b->is_percent)
        return false;
    return a->is_percent ? percent_equal(a, b) : percent_equal(b, a);
}
