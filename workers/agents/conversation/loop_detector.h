/*
 * loop_detector.h - whether an agent goes in circles: the same call with the same result, or the same two,
 * three or four in turn, several times in a row. Remembers digests alone. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_LOOP_DETECTOR_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_LOOP_DETECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/slice.h"

enum { REPEATS_MAX = 64, REPEATS_PERIOD_MAX = 4 };

struct loop_detector {
    uint64_t seen[(REPEATS_MAX + 1) * REPEATS_PERIOD_MAX]; /* a ring of the newest */
    size_t count;                                          /* of all there were */
};

/* One call as it was made and what it gave. */
void loop_detector_add(struct loop_detector *repeats, const char *name, struct slice call, struct slice result,
                       int status);
/*
 * How many calls make up a round that was just made more than `max` times in a row (1 to
 * REPEATS_MAX); 0: there is none.
 */
size_t loop_detector_find(const struct loop_detector *repeats, size_t max);
void loop_detector_forget(struct loop_detector *repeats);

#endif
