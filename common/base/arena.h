/*
 * arena.h - memory of many small things that go together: taken bit by bit, freed at once.
 */
#ifndef SLUICE_COMMON_BASE_ARENA_H
#define SLUICE_COMMON_BASE_ARENA_H

#include "common/base/slice.h"

struct arena_chunk;

/* Zeroed: an empty one. */
struct arena {
    struct arena_chunk *newest;
};

/* Room for `size` bytes at once, where what is to come can be guessed; false: no memory. */
bool arena_reserve(struct arena *arena, size_t size);
/* For any type, zeroed or not; NULL: no memory. A size of 0 has an address, too. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zeroed(struct arena *arena, size_t count, size_t size);
/* A copy with its NUL. */
char *arena_text(struct arena *arena, struct slice text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What was taken is gone; the arena is empty. */
void arena_finish(struct arena *arena);

#endif
