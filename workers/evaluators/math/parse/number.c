#include "workers/evaluators/math/parse/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "workers/evaluators/math/field.h"

enum { EXPONENT_MAX = 4000 };

/* ---- fractions ------------------------------------------------------------------------------- */

static math_int128 common_divisor(math_int128 a, math_int128 b)
{
    while (b != 0) {
        math_int128 left = a % b;
        a = b;
        b = left;
    }
    return a;
}

/* The smallest number has no opposite: what touches it is not exact. */
static bool has_opposite(math_int128 value) { return value != (math_int128)((unsigned __int128)1 << 127); }

static struct math_fraction reduce(struct math_fraction value)
{
    if (!value.is_exact || value.below == 0 || !has_opposite(value.above) || !has_opposite(value.below))
        return (struct math_fraction){.below = 1};
    math_int128 divisor = common_divisor(value.above, value.below);
    if ((divisor < 0) != (value.below < 0))
        divisor = -divisor;
    value.above /= divisor;
    value.below /= divisor;
    return value;
}

struct math_fraction math_fraction_multiply(struct math_fraction a, struct math_fraction b)
{
    struct math_fraction product = {.below = 1};
    product.is_exact = a.is_exact && b.is_exact && !__builtin_mul_overflow(a.above, b.above, &product.above) &&
                       !__builtin_mul_overflow(a.below, b.below, &product.below);
    return reduce(product);
}

struct math_fraction math_fraction_divide(struct math_fraction a, struct math_fraction b)
{
    return math_fraction_multiply(a, (struct math_fraction){b.is_exact && b.above != 0, b.below, b.above});
}

struct math_fraction math_fraction_add(struct math_fraction a, struct math_fraction b)
{
    struct math_fraction sum = {.below = 1};
    math_int128 left, right;
    sum.is_exact = a.is_exact && b.is_exact && !__builtin_mul_overflow(a.above, b.below, &left) &&
                   !__builtin_mul_overflow(b.above, a.below, &right) &&
                   !__builtin_add_overflow(left, right, &sum.above) &&
                   !__builtin_mul_overflow(a.below, b.below, &sum.below);
    return reduce(sum);
}

/* ---- digits ------------------------------------------------------------------------------------ */

static void push_digit(struct math_number *number, int digit, bool is_place)
{
    number->residue = field_add(field_multiply(number->residue, 10), (uint64_t)digit);
    number->approximate = number->approximate * 10 + digit;
    number->is_exact = number->is_exact && !__builtin_mul_overflow(number->above, (math_int128)10, &number->above) &&
                       !__builtin_add_overflow(number->above, (math_int128)digit, &number->above);
    number->places += is_place;
    number->significant += number->significant > 0 || digit != 0;
}

/* Times ten to the `power`. */
static void scale(struct math_number *number, int power)
{
    math_int128 *grows = power < 0 ? &number->below : &number->above;
    for (int i = abs(power); i > 0 && number->is_exact; i--)
        number->is_exact = !__builtin_mul_overflow(*grows, (math_int128)10, grows);
    uint64_t ten = field_power(10, (uint64_t)abs(power));
    number->residue = field_multiply(number->residue, power < 0 ? field_inverse(ten) : ten);
    number->approximate *= powl(10, (long double)power);
}

bool math_number_read(const struct math_token *token, struct math_number *ret)
{
    struct math_number number = {.is_exact = true, .below = 1};
    bool any = false;
    for (size_t i = 0; i < token->text.len; i++)
        if (isdigit(token->text.data[i])) {
            any = true;
            push_digit(&number, token->text.data[i] - '0', i > token->point);
        }
    int power = token->exponent - number.places;
    if (!any || abs(token->exponent) > EXPONENT_MAX || number.places > MATH_TEXT_MAX)
        return false;
    number.is_whole = token->point == token->text.len && token->exponent == 0;
    number.last_power = power;
    scale(&number, power);
    struct math_fraction reduced = reduce((struct math_fraction){number.is_exact, number.above, number.below});
    number.is_exact = reduced.is_exact;
    number.above = reduced.above;
    number.below = reduced.below;
    *ret = number;
    return true;
}
