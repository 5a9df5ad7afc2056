/*
 * beat_time.h - when a worker beats: once a second, and then, as all others do, on a twentieth of a second of the wall
 * clock. Which of the twenty it is follows from when it started. So a broker of a thousand workers wakes twenty times
 * a second for fifty beats each, where it would wake for each of them, which costs more than the beats. Nothing
 * depends on clocks being right.
 */
#ifndef SLUICE_WORKERS_SERVICE_BEAT_TIME_H
#define SLUICE_WORKERS_SERVICE_BEAT_TIME_H

#include <stdint.h>

enum { BEAT_MS = 1000, BEAT_STEP_MS = 50 };

/* From now to the next beat. */
static inline int64_t beat_time_wait_ms(int64_t wall_ms) { return BEAT_MS - wall_ms % BEAT_STEP_MS; }

#endif
