/*
 * core/queue/forgetting.h - trajectories that need not be kept any more.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_FORGETTING_H
#define SLUICE_BROKER_CORE_QUEUE_FORGETTING_H

#include <stdint.h>

struct core;
struct stream;

/* Those up to `seq`, which is not beyond the stream's head, on disk too. */
void stream_acknowledge(struct core *core, struct stream *stream, uint64_t seq);

#endif
