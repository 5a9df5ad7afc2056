/*
 * worker_inside.h - a worker's insides, shared by worker.c (its life and beat), orders.c (what the broker tells it),
 * cancel.c (jobs that it ends itself), leave.c (signals and the way out), load_reports.c, live_reports.c and
 * session_reports.c.
 */
#ifndef SLUICE_WORKERS_SERVICE_WORKER_INSIDE_H
#define SLUICE_WORKERS_SERVICE_WORKER_INSIDE_H

#include <stdatomic.h>
#include <sys/utsname.h>

#include "schemas/messages/message_max.h"
#include "workers/jobs/cache_watch.h"
#include "workers/service/lane.h"
#include "workers/service/outbox.h"
#include "workers/service/running.h"
#include "workers/service/worker.h"

enum worker_state { WORKER_WORKING, WORKER_DRAINING, WORKER_LEAVING };

struct worker {
    struct worker_plan plan;
    enum worker_state state;
    enum worker_end end;
    struct cache_watch cache_watch;
    char node_error[256]; /* told with the beat until then */
    int64_t node_error_until_ms;
    char id[128], host[65];
    struct utsname node;
    uint64_t epoch, engines_heard; /* the newest lane.engine */
    struct job_context context;
    void *zmq;
    struct lane lane;
    struct running running;
    struct shared_task *shared_task; /* of the message in hand, for jobs that follow in it; NULL: none */
    struct outbox outbox;
    struct loop_watch *watches[3]; /* the lane's two descriptors, signals */
    int signals, signals_seen;
    struct loop_timer *beat_timer, *leave_timer;
    int64_t leave_at_ms;   /* draining: when its grace is over */
    struct loop_soon more; /* the lane may hold more than was read */
    int64_t first_beat_ms; /* when it was sent; 0: not yet */
    bool beat_wanted, said_full, said_unreached;
    bool sessions_wanted;          /* one is to be told of */
    struct loop_timer *live_timer; /* NULL: no job is watched */
    atomic_size_t live_bytes;      /* of rollout.live, on their way */
    unsigned beats;
    char offers[MESSAGE_MAX(worker_beat, offers) + 1];
    uint64_t malformed, malformed_said;
    struct refusal malformed_last;
};

#endif
