/*
 * perfetto.h - spans as the trace events of Chrome and Perfetto: a file for ui.perfetto.dev, also without a network.
 *
 * A process is a stage (and one the whole rollouts), a thread a lane of it: a new lane begins where all are taken, so
 * that there are as many as were busy at once. What is inside a run stands in the run's lane; an arrow leads from each
 * stage of a rollout to its next. Init is the group's: of a group's rollouts only the first has it here. Events are
 * written as rollouts come; what is kept is where each lane ended.
 */
#ifndef SLUICE_CLIENT_TRACE_PERFETTO_H
#define SLUICE_CLIENT_TRACE_PERFETTO_H

#include "client/trace/spans.h"
#include "common/base/buffer.h"

enum { PERFETTO_PROCESSES = 6, PERFETTO_LANES_MAX = 65536, PERFETTO_GROUPS_MAX = 4096 };

struct perfetto_lanes {
    int64_t *ends_us; /* of the last span in each */
    size_t count, capacity;
};

struct perfetto {
    struct perfetto_lanes lanes[PERFETTO_PROCESSES];
    uint64_t *groups; /* ids of those whose init is written: the last so many */
    size_t group_count;
    uint64_t flows, events;
};

/* Each appends text to `out`, which together is one JSON object. False when out of memory. */
bool perfetto_begin(struct perfetto *perfetto, struct buffer *out);
bool perfetto_add(struct perfetto *perfetto, const struct span_list *spans, struct buffer *out);
bool perfetto_end(struct perfetto *perfetto, struct buffer *out);
void perfetto_finish(struct perfetto *perfetto); /* frees */

#endif
