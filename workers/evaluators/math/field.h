/*
 * evaluators/math/field.h - arithmetic modulo one prime of 62 bits. Two expressions that have one value at random
 * points of this field are one polynomial, but for a chance of their degree in 2^62. -1 is a square in it, so complex
 * numbers with rational parts are in it, too.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_FIELD_H
#define SLUICE_WORKERS_EVALUATORS_MATH_FIELD_H

#include "common/base/slice.h"

#define FIELD_PRIME 4611686018427387817ULL
#define FIELD_ROOT_OF_MINUS_ONE 4490822397581186023ULL

__extension__ typedef unsigned __int128 field_product;

static inline uint64_t field_add(uint64_t a, uint64_t b) { return (a + b) % FIELD_PRIME; }
static inline uint64_t field_negate(uint64_t a) { return a ? FIELD_PRIME - a : 0; }
static inline uint64_t field_multiply(uint64_t a, uint64_t b) { return (uint64_t)((field_product)a * b % FIELD_PRIME); }
static inline uint64_t field_power(uint64_t base, uint64_t exponent)
{
    uint64_t power = 1;
    for (; exponent; exponent >>= 1, base = field_multiply(base, base))
        if (exponent & 1)
            power = field_multiply(power, base);
    return power;
}
/* Of a value that is not 0. */
static inline uint64_t field_inverse(uint64_t a) { return field_power(a, FIELD_PRIME - 2); }

/* A value that looks random, made of another and of `more`. */
static inline uint64_t field_mix(uint64_t a, uint64_t more)
{
    a += more * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL;
    a = (a ^ (a >> 30)) * 0xbf58476d1ce4e5b9ULL;
    a = (a ^ (a >> 27)) * 0x94d049bb133111ebULL;
    return (a ^ (a >> 31)) % FIELD_PRIME;
}
static inline uint64_t field_mix_text(uint64_t a, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        a = field_mix(a, text.data[i] + 1U);
    return a;
}

#endif
