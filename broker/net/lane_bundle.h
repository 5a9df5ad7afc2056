/*
 * lane_bundle.h - the bundle that a lane is making (common/net/bundle.h). What jobs share, a job.task, is in it once,
 * before the first of them: a bundle that begins anew has it again, as it means nothing beyond.
 */
#ifndef SLUICE_BROKER_NET_LANE_BUNDLE_H
#define SLUICE_BROKER_NET_LANE_BUNDLE_H

#include <zmq.h>

#include "common/net/bundle.h"

/* All zero is an empty one. */
struct lane_bundle {
    struct buffer bytes;
    size_t task_at, task_len; /* the last job.task in it; 0: none */
    size_t task_first;        /* the bytes of the one that it begins with, which its bound does not count */
};

void lane_bundle_finish(struct lane_bundle *bundle);

/* Whether the message has room, with the job.task that it needs; empty: none. An empty bundle takes whatever it is. */
bool lane_bundle_takes(const struct lane_bundle *bundle, struct slice task, struct slice message);
/* Adds both, the task if it is not the last one there, or nothing: false when out of memory. */
bool lane_bundle_add(struct lane_bundle *bundle, struct slice task, struct slice message);
/* Makes a frame of it (bundle_peek), and leaves it empty. False when out of memory: what was in it is gone. */
bool lane_bundle_take(struct lane_bundle *bundle, zmq_msg_t *ret);

#endif
