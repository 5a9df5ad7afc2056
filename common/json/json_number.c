#include "common/json/json_number.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/wide.h"

enum {
    SHORT_BYTES_MAX = 6,
    TEXT_MAX = 64,       /* bytes of one that strtod reads, and its end */
    DIGITS_MAX = 19,     /* that surely fit 64 bits */
    POWER_MAX = 27,      /* of five: likewise */
    EXPONENT_END = 10000 /* beyond it nothing counts */
};

__extension__ typedef unsigned __int128 uint128;

/* A number in parts: digits * 10^power. */
struct parts {
    bool is_negative, is_integer;
    uint64_t digits; /* if they are not too many */
    size_t count;    /* of them, without the zeros before the first */
    int64_t power;
};

/* ---- digits ------------------------------------------------------------------------------ */

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static bool are_digits(uint64_t word)
{
    return ((word & WORD_EACH(0xf0u)) | ((word + WORD_EACH(6u)) & WORD_EACH(0xf0u)) >> 4) == WORD_EACH(0x33u);
}

/* Eight digits, the first in the lowest byte: neighbours are joined to pairs, these to fours, these to all. */
static uint64_t join_digits(uint64_t word)
{
    word = (word & WORD_EACH(0x0fu)) * (10 * 256 + 1) >> 8;
    word = (word & 0x00ff00ff00ff00ffu) * (100 * 65536 + 1) >> 16;
    return (word & 0x0000ffff0000ffffu) * (10000 * 4294967296u + 1) >> 32;
}

/* Appends the digits that stand there; where they end. */
static const uint8_t *read_digits(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    for (; end - at >= 8; at += 8) {
        const uint64_t word = word_load(at);
        if (!are_digits(word))
            break;
        *value = *value * 100000000 + join_digits(word);
    }
    for (; at < end && is_digit(*at); at++)
        *value = *value * 10 + (uint64_t)(*at - '0');
    return at;
}

/* ---- parts ------------------------------------------------------------------------------- */

static const uint8_t *read_whole(const uint8_t *at, const uint8_t *end, struct parts *ret)
{
    if (at < end && *at == '0')
        return at + 1 < end && is_digit(at[1]) ? NULL : at + 1;
    const uint8_t *behind = read_digits(at, end, &ret->digits);
    ret->count = (size_t)(behind - at);
    return ret->count > 0 ? behind : NULL;
}

/* Behind the point. */
static const uint8_t *read_places(const uint8_t *at, const uint8_t *end, struct parts *ret)
{
    const uint8_t *digits = at;
    while (ret->count == 0 && digits < end && *digits == '0')
        digits++;
    const uint8_t *behind = read_digits(digits, end, &ret->digits);
    ret->count += (size_t)(behind - digits);
    ret->power = at - behind;
    ret->is_integer = false;
    return behind > at ? behind : NULL;
}

/* Behind the e. */
static const uint8_t *read_exponent(const uint8_t *at, const uint8_t *end, struct parts *ret)
{
    const bool is_negative = at < end && *at == '-';
    at += at < end && (*at == '+' || *at == '-');
    const uint8_t *digits = at;
    int64_t exponent = 0;
    for (; at < end && is_digit(*at); at++)
        exponent = exponent < EXPONENT_END ? exponent * 10 + (*at - '0') : EXPONENT_END;
    ret->power += is_negative ? -exponent : exponent;
    ret->is_integer = false;
    return at > digits ? at : NULL;
}

static const uint8_t *read_parts(const uint8_t *at, const uint8_t *end, struct parts *ret)
{
    *ret = (struct parts){.is_negative = at < end && *at == '-', .is_integer = true};
    at = read_whole(at + ret->is_negative, end, ret);
    if (at && at < end && *at == '.')
        at = read_places(at + 1, end, ret);
    if (at && at < end && (*at | 0x20) == 'e')
        at = read_exponent(at + 1, end, ret);
    return at;
}

/* ---- what they are worth ----------------------------------------------------------------- */

static const uint64_t fives[POWER_MAX + 1] = {
    0x0000000000000001, 0x0000000000000005, 0x0000000000000019, 0x000000000000007d, 0x0000000000000271,
    0x0000000000000c35, 0x0000000000003d09, 0x000000000001312d, 0x000000000005f5e1, 0x00000000001dcd65,
    0x00000000009502f9, 0x0000000002e90edd, 0x000000000e8d4a51, 0x0000000048c27395, 0x000000016bcc41e9,
    0x000000071afd498d, 0x0000002386f26fc1, 0x000000b1a2bc2ec5, 0x000003782dace9d9, 0x00001158e460913d,
    0x000056bc75e2d631, 0x0001b1ae4d6e2ef5, 0x000878678326eac9, 0x002a5a058fc295ed, 0x00d3c21bcecceda1,
    0x0422ca8b0a00a425, 0x14adf4b7320334b9, 0x6765c793fa10079d};

/*
 * digits / 10^power, rounded once: digits / 5^power with 63 bits or more and, as the lowest of them, whether there is a
 * rest; then powers of two. All of it is far from a double's bounds.
 */
static double divide(uint64_t digits, unsigned power)
{
    const int up = __builtin_clzll(digits), by = __builtin_clzll(fives[power]);
    const uint128 dividend = (uint128)(digits << up) << 63;
    const uint64_t divisor = fives[power] << by;
    uint64_t quotient = (uint64_t)(dividend / divisor);
    quotient |= dividend != (uint128)quotient * divisor;
    const uint64_t two = (uint64_t)(1023 - 63 - up + by - (int)power) << 52; /* the bits of a power of it */
    double scale;
    memcpy(&scale, &two, sizeof(scale));
    return (double)quotient * scale;
}

static bool read_slowly(const uint8_t *at, const uint8_t *end, double *ret)
{
    char text[TEXT_MAX];
    if ((size_t)(end - at) >= sizeof(text))
        return false;
    memcpy(text, at, (size_t)(end - at));
    text[end - at] = '\0';
    *ret = strtod(text, NULL);
    return isfinite(*ret);
}

static bool read_real(const uint8_t *at, const uint8_t *end, const struct parts *parts, double *ret)
{
    if (parts->count > DIGITS_MAX || parts->power > 0 || parts->power < -POWER_MAX)
        return read_slowly(at, end, ret);
    *ret = parts->digits ? divide(parts->digits, (unsigned)-parts->power) : 0;
    if (parts->is_negative)
        *ret = -*ret;
    return true;
}

/* Most are short: digits alone, and few. NULL: it is not of that form. */
static const uint8_t *read_short(const uint8_t *at, const uint8_t *end, int64_t *ret)
{
    const uint8_t *digits = at;
    int64_t value = 0;
    for (; at < end && at - digits < SHORT_BYTES_MAX && is_digit(*at); at++)
        value = value * 10 + (*at - '0');
    const bool is_whole = at > digits && at < end && !is_digit(*at) && *at != '.' && (*at | 0x20) != 'e';
    *ret = value;
    return is_whole && (*digits != '0' || at == digits + 1) ? at : NULL;
}

const uint8_t *json_number_read(const uint8_t *at, const uint8_t *end, struct json_number *ret)
{
    const uint8_t *behind = read_short(at, end, &ret->integer);
    ret->is_integer = true;
    if (behind)
        return behind;
    struct parts parts;
    behind = read_parts(at, end, &parts);
    if (!behind)
        return NULL;
    ret->is_integer = parts.is_integer && parts.count <= DIGITS_MAX &&
                      parts.digits <= (uint64_t)INT64_MAX + parts.is_negative;
    if (!ret->is_integer)
        return read_real(at, behind, &parts, &ret->real) ? behind : NULL;
    ret->integer = (int64_t)(parts.is_negative ? -parts.digits : parts.digits);
    return behind;
}
