/*
 * prng.h - made-up chance that can be repeated: a state, and numbers drawn from it (splitmix64).
 * Who has a state of their own draws the same whatever others do.
 */
#ifndef SLUICE_COMMON_BASE_PRNG_H
#define SLUICE_COMMON_BASE_PRNG_H

#include <math.h>
#include <stdint.h>

static inline uint64_t prng_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The state of the `index`-th of its kind. */
static inline uint64_t prng_of(uint64_t seed, uint64_t kind, uint64_t index)
{
    return prng_mix(prng_mix(seed * 4 + kind) + index * 0x9e3779b97f4a7c15u);
}

static inline uint64_t prng_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return prng_mix(*state);
}

/* Above 0 and below 1. */
static inline double prng_uniform(uint64_t *state)
{
    return ((double)(prng_next(state) >> 11) + 0.5) / 9007199254740992.0;
}

/* Of mean 0 and deviation 1 (Box and Muller). */
static inline double prng_normal(uint64_t *state)
{
    double u = prng_uniform(state), v = prng_uniform(state);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static inline double prng_lognormal(uint64_t *state, double median, double sigma)
{
    return median * exp(sigma * prng_normal(state));
}

#endif
