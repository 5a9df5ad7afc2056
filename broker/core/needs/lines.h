/*
 * core/needs/lines.h - who waits for a worker that offers what it needs: jobs of PLACE_UNOFFERED.
 *
 * Clients take turns in a need, and in each client its streams; in a stream the higher priorities come first, and in
 * one priority who came first. So those that are queued again as slots become free are of all who wait for them.
 */
#ifndef SLUICE_BROKER_CORE_NEEDS_LINES_H
#define SLUICE_BROKER_CORE_NEEDS_LINES_H

#include "broker/core/state/need.h"

void line_push(struct core *core, struct need *need, struct job *job);
void line_remove(struct need *need, struct job *job);
/* Whose turn it is, which passes on: the caller takes the job out. NULL: nobody waits. */
struct job *line_turn(struct need *need);
/* What a need that goes with the core still has of them. */
void lines_finish(struct need *need);

#endif
