/*
 * wide.h - many bytes looked at at once, in whatever registers the compiler has for that: 32 at a time in long texts,
 * 8 at a time at their ends. A mask of a comparison has all bits of a byte set where it holds.
 */
#ifndef SLUICE_COMMON_BASE_WIDE_H
#define SLUICE_COMMON_BASE_WIDE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDE_BYTES = 16 };
typedef uint8_t wide __attribute__((vector_size(WIDE_BYTES)));
typedef int8_t wide_signed __attribute__((vector_size(WIDE_BYTES)));

static inline wide wide_load(const uint8_t *at)
{
    wide bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return bytes;
}

/* Whether all bits are set. */
static inline bool wide_is_full(wide mask)
{
    uint64_t halves[2];
    memcpy(halves, &mask, sizeof(halves));
    return (halves[0] & halves[1]) == UINT64_MAX;
}

/* Eight bytes, the first in the lowest bits. */
static inline uint64_t word_load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

#define WORD_EACH(byte) (0x0101010101010101u * (byte))

/* Not 0 where a byte of the word is less than `bound`, at most 0x80; the lowest bit set is in the first such byte. */
static inline uint64_t word_has_less(uint64_t word, uint8_t bound)
{
    return (word - WORD_EACH(bound)) & ~word & WORD_EACH(0x80);
}

/* Which byte holds the lowest bit that is set. */
static inline unsigned word_first(uint64_t bits) { return (unsigned)__builtin_ctzll(bits) / 8; }

#endif
