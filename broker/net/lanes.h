/*
 * lanes.h - the broker's way to each worker: open, send, close. A lane is a PUSH that
 * connects to the endpoint in the worker's beat. What is sent before the connection
 * stands waits in the lane for LANE_LATE_MS, then it is dropped: a worker is to be given no jobs before
 * lanes_take_news has told that its lane is connected. What is in a lane when it closes is revoked.
 *
 * A lane breaks when its connection ends, or when more would wait in it than its worker may rightly be sent: nobody
 * reads it then. What waited is freed when it closes. One that does not come about is tried on and on.
 * Where keys are asked for, the broker is the CURVE server of each lane although it connects: so a
 * worker takes jobs from the broker it knows, and the broker gives them to workers it knows; a lane
 * whose handshake fails breaks at once.
 * Where an endpoint names a host, the lane waits until the name is known (names.h), and libzmq is given the
 * number: what is sent meanwhile is dropped.
 * A broken lane is told of once by lanes_take_broken, and the owner closes it. An endpoint is a
 * peer's text: where it may lead is lane_address.h's to say; there are no more than LANES_MAX of them.
 */
#ifndef SLUICE_BROKER_NET_LANES_H
#define SLUICE_BROKER_NET_LANES_H

#include <zmq.h>

#include "broker/net/auth.h"
#include "broker/net/lane_address.h"

struct lanes;

enum {
    LANES_MAX = 8192,
    LANE_LATE_MS = 2000,      /* without a connection: its worker is unreached, and what would help is told */
    LANE_PATIENCE_MS = 10000, /* ... and its host's name looked up again */
    LANE_NAME_SIZE = 129,
    LANE_NEWS_SIZE = 512
};

/* `context`, a ZeroMQ context, and `auth` outlive it, as what `rules` borrows does. NULL with errno. */
struct lanes *lanes_create(void *context, const struct auth *auth, struct lane_rules rules);
void lanes_destroy(struct lanes **lanes);

/* Readable (for poll) when lanes_hear may find news. */
int lanes_fd(const struct lanes *lanes);

/* Whether a lane to there would be opened, as far as that is known without looking: 0, or why not. */
int lanes_judge(const struct lanes *lanes, struct slice endpoint, struct slice peer, struct fail *fail);

struct lane_limits {
    uint64_t messages_max; /* as many may wait in it; at least 1 */
    bool bundles;          /* several may go as one (common/net/bundle.h) */
};

/*
 * A lane that is open to the same worker already is closed first. `peer`: where the worker's connection comes from
 * (lane_address_settle). On failure the lane counts as broken. -EINVAL: not an endpoint; -EACCES: not one that the
 * broker connects to; -EMFILE: no more lanes, sockets or files.
 */
int lanes_open(struct lanes *lanes, struct slice worker, struct slice endpoint, struct slice peer,
               struct lane_limits limits, int64_t now_ms, struct fail *fail);
/*
 * Takes the frame, sent, bundled until lanes_flush, or neither; never blocks. `task`: the job.task that it needs before
 * it in its bundle, of a lane with such; empty: none. With `due_ms` it may wait until then for something that goes to
 * the same worker and cannot wait. -ENOENT: no such lane. -EAGAIN: it is full, and broken by that.
 */
int lanes_send(struct lanes *lanes, struct slice worker, struct slice task, zmq_msg_t *frame, int64_t due_ms,
               struct fail *fail);
/* Sends what is bundled, at the end of a cycle, but for what may wait longer. */
void lanes_flush(struct lanes *lanes, int64_t now_ms);
/* When it is to be called at the latest, for what waits; INT64_MAX: nothing does. */
int64_t lanes_due_ms(const struct lanes *lanes);
void lanes_close(struct lanes *lanes, struct slice worker);
size_t lanes_count(const struct lanes *lanes);

/* What became of a lane. */
struct lane_news {
    char worker[LANE_NAME_SIZE];
    char why[LANE_NEWS_SIZE]; /* it is not connected yet, and what would help; empty: it is */
};
bool lanes_take_news(struct lanes *lanes, struct lane_news *ret);

/* Finds out what became of connections since: for lanes_take_news and lanes_take_broken. */
void lanes_hear(struct lanes *lanes, int64_t now_ms);
bool lanes_have_broken(const struct lanes *lanes);

/* The next worker whose lane broke; false when there is none. `why` is for the log. */
bool lanes_take_broken(struct lanes *lanes, char ret_worker[LANE_NAME_SIZE], const char **ret_why);

#endif
