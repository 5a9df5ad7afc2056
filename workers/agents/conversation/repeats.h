/*
 * repeats.h - whether an agent goes in circles: the same call with the same result, or the same two,
 * three or four in turn, several times in a row. Remembers digests alone. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_REPEATS_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/slice.h"

enum { REPEATS_MAX = 64, REPEATS_PERIOD_MAX = 4 };

struct repeats {
    uint64_t seen[(REPEATS_MAX + 1) * REPEATS_PERIOD_MAX]; /* a ring of the newest */
    size_t count;                                          /* of all there were */
};

/* One call as it was made and what it gave. */
void repeats_add(struct repeats *repeats, const char *name, struct slice call, struct slice result,
                 int status);
/*
 * How many calls make up a round that was just made more than `max` times in a row (1 to
 * REPEATS_MAX); 0: there is none.
 */
size_t repeats_find(const struct repeats *repeats, size_t max);
void repeats_forget(struct repeats *repeats);

#endif
