/* io/inner.h - what the files of broker/io share. */
#ifndef SLUICE_BROKER_IO_INNER_H
#define SLUICE_BROKER_IO_INNER_H

#include "broker/io/batch.h"
#include "broker/io/io.h"
#include "broker/io/ledger_thread.h"
#include "broker/io/line_budget.h"
#include "broker/io/looks.h"
#include "broker/io/turns.h"
#include "broker/io/waiting.h"
#include "broker/layer_gc/layer_gc.h"
#include "broker/ledger/files/backup.h"
#include "broker/ledger/ledger.h"
#include "broker/ledger/files/lock.h"
#include "broker/net/conn_limit.h"
#include "broker/net/feed.h"
#include "broker/net/lanes.h"
#include "broker/net/zmq_frame.h"
#include "broker/task_summary.h"

enum {
    STALLED_MS = 1000,     /* so late the broker itself stood still */
    GOODBYE_MS = 500,      /* so long at most a lane that broke waits for what its worker sent before */
    EFFECTS_MAX = 1 << 18, /* what a cycle's messages may cause, beyond the last */
    LOADS_MAX = 16,        /* ... and trajectories that they ask for, of a batch as well, a range counting ... */
    RANGE_LOADS = 8,       /* ... for so many */
    TURN_US = 10000,       /* ... and the time that a socket's messages take, beyond the last */
    SHARE_US = 150,        /* ... of clients' at least, where a worker's result ... */
    LATELY_MS = 50,        /* ... has come since so long ago */
    REST_US = 500,         /* so long FRONT is then left alone, where a client has more */
    LIVE_WAITING_MAX = 512 /* messages of workers: with so many, rollout.live is dropped */
};

/* Says something that may happen often no more than once a second. */
struct complaint {
    int64_t said_ms;
    uint64_t unsaid;
};

struct io {
    struct ledger *ledger;
    struct ledger_thread *ledger_thread; /* NULL: the ledger is in memory only, and always ours */
    struct batch *filling, *spare;       /* spare: NULL while the thread has it */
    uint64_t batch_number;               /* of the one that is filled, from 1 */
    struct batch chore;                  /* stands for a slice of the ledger's chores */
    struct commit_point committed;       /* the last that we know of */
    bool is_quiet;                       /* nothing came, though it was waited for */
    int64_t gathering_until_ms;          /* what comes is gathered for the next batch; 0: it is not */
    int64_t given_ms;                    /* when the last one was given to the thread ... */
    int64_t begun_ms;                    /* ... and when the ledger had anything to do */
    int64_t held_up_ms;                  /* so long it was stuck with that, and nothing left; 0: it was not */
    struct promises *promises;
    struct core *core;
    struct auth auth;
    struct conn_limit *conns;
    bool is_drained[CONN_LIMIT_SOCKETS]; /* nothing was left to read, in this cycle */
    int64_t broken_since_ms;             /* of lanes that broke and the core has not heard of; 0: there are none */
    struct lanes *lanes;
    uint64_t lane_changes; /* that were carried out: lanes are as the core thinks when it had no more */
    struct feed *feed;
    void *context, *front, *sink;
    struct io_endpoints bound;
    uint64_t epoch;
    int signal_fd, moment_fd; /* moment: a timer, for what is shorter than a millisecond */
    struct lock ipc_lock;
    int64_t due_ms; /* when the core wants to be called */
    bool stopping;

    int64_t result_ms;           /* when a worker's result came last */
    int64_t workers_us;          /* what workers' messages took since clients had their part */
    int64_t rest_until_us;       /* FRONT is left alone until then */
    struct turns *turns[2];      /* of FRONT and SINK, by their places: what was read and waits */
    struct looks looks;          /* of what waits of FRONT */
    bool is_looking_back;        /* a cycle's looks into the ledger have begun */
    struct task_summary summary; /* of the group.submit in hand */
    struct buffer out;           /* the message being made */
    struct held_bytes held;

    const char *ledger_dir; /* NULL: the ledger is in memory only */
    uint64_t disk_reserve_bytes;
    int64_t disk_look_ms;       /* when the disk is looked at next ... */
    uint64_t disk_unseen_bytes; /* ... or sooner, for what was taken since it was */
    int64_t clock_note_ms;      /* when the ledger's clock is noted next */
    bool disk_is_low;
    bool is_look_due;      /* are its files where they were? */
    struct backup *backup; /* the one that is being made, or NULL; and who asked for it */
    struct buffer backup_client;
    uint64_t backup_tag;

    struct viewers *viewers; /* who watches rollouts */

    struct layer_gc *layer_gc; /* NULL: nothing is deleted from it */
    struct layer_gc_view layer_gc_seen;
    int64_t layer_gc_look_ms;

    struct core_process process; /* as it was told last */
    int64_t fds_counted_ms;

    struct complaint bad_worker_message, turned_away, undeliverable;
    struct line_budget task_lines, infra_lines, health_lines;
};

/* ---- io/restore.c -------------------------------------------------------------------- */

/* Makes the core, of a new epoch, and tells it what the ledger holds. */
int io_restore(struct io *io, const struct io_options *options, struct fail *fail);

/* The sockets' places in conn_limit. */
enum { PLACE_FRONT, PLACE_SINK, PLACE_FEED };

/* ---- io/sockets.c ------------------------------------------------------------------- */

int io_bind(struct io *io, const struct io_options *options, struct fail *fail);
void io_unbind(struct io *io);

/* ---- io/intake.c --------------------------------------------------------------------- */

/* Reads what is there, and lets the core handle as much as a cycle may. */
void io_take_in(struct io *io, int64_t now_ms, int64_t wall_ms);
/* How long FRONT is to be left alone still; 0: it is not. */
int64_t io_rest_us(const struct io *io);
/* Whether something was read that waits for its turn, and for nothing else. */
bool io_has_waiting(const struct io *io);
/* At the end. */
void io_drop_waiting(struct io *io);

/* ---- io/live.c ----------------------------------------------------------------------- */

/* NULL when out of memory. */
struct viewers *viewers_create(void);
void viewers_destroy(struct viewers **viewers);
/* Sends a client events of a rollout, unless it has not read those before: then they are dropped, and counted. */
int io_send_events(struct io *io, const struct effect *effect, struct fail *fail);

/* ---- io/complain.c ------------------------------------------------------------------- */

/* Logs `text` as event `id`, at most once a second, with how often it was not said. */
void io_complain(struct complaint *complaint, const char *id, const char *text);

/* ---- io/sending.c -------------------------------------------------------------------- */

/* Sends `body`, now. A client that is gone, or does not read, gets nothing: it asks again when it is back. */
void io_send(struct io *io, struct slice client, zmq_msg_t *body);
/* The same of what is for people, and counted where it is dropped. */
void io_send_event(struct io *io, struct slice client, zmq_msg_t *body);
/* Publishes it, now. */
int io_publish(struct io *io, struct slice stream, zmq_msg_t *body, struct fail *fail);
/*
 * Sends it to a worker, now, with that job.task before it if it is not empty (lanes_send). What goes wrong with a
 * lane is the core's to mend, by lanes_take_broken or a deadline.
 */
void io_send_lane(struct io *io, struct slice worker, struct slice task, zmq_msg_t *frame);

/* ---- io/answer.c: as promises ---------------------------------------------------------- */

/* Sends what io->out holds. Negative when there is no memory for it. */
int io_send_made(struct io *io, struct slice client, struct fail *fail);
/* Sends a client a message. Negative when there is no memory for it. */
int io_answer(struct io *io, struct slice client, enum message_id id, const void *message, struct fail *fail);

/* ---- io/promises.c ------------------------------------------------------------------- */

enum promise_to { PROMISE_CLIENT, PROMISE_EVENTS, PROMISE_FEED, PROMISE_LANE };

/* NULL when out of memory. */
struct promises *promises_create(void);
/* What still waits is not sent. */
void promises_destroy(struct promises **destroying);
/* Sends `body`, which is taken, to who has that name, once all that is committed now is durable. */
int promise_send(struct io *io, enum promise_to to, struct slice name, zmq_msg_t *body, struct fail *fail);
/* Sends some of what has become true; and all, waiting for the disk. Negative when the ledger failed. */
int promises_keep(struct io *io, struct fail *fail);
int promises_keep_all(struct io *io, struct fail *fail);
/* There are more of them, as far as was looked. */
bool promises_can_be_kept(const struct io *io);
/* Has a sync begin, if it is time. */
void promises_sync(struct io *io, int64_t now_ms);
/* Waits for the disk if more promises wait than memory should hold. */
int promises_bound(struct io *io, struct fail *fail);
/* When promises_sync is to be called, at the latest. */
int64_t promises_due_ms(const struct io *io);

/* ---- io/failure_log.c ---------------------------------------------------------------- */

/* A line for each of these effects, which are committed, that is a rollout's end as task or infra. */
void io_log_ends(struct io *io, struct effects effects, int64_t now_ms);
/* Carries out HEALTH_CHANGED. */
int io_log_health(struct io *io, const struct effect *effect, struct fail *fail);

/* ---- io/effects.c -------------------------------------------------------------------- */

/* Of a batch that was done, committed or not: opens and closes lanes, and sends jobs and what else promises nothing. */
int io_send_lanes(struct io *io, struct batch *batch, struct fail *fail);
/* Then, of one that was committed: sends or promises the rest. */
int io_send_batch(struct io *io, struct batch *batch, struct fail *fail);

/* ---- io/handover.c --------------------------------------------------------------------- */

int io_start_ledger_thread(struct io *io, struct fail *fail);
void io_stop_ledger_thread(struct io *io);
/* Whether the ledger is this thread's. */
bool io_has_ledger(const struct io *io);
/* A batch waits for company: what is there is to be handed over when nothing has come for a while. */
bool io_is_gathering(const struct io *io);
/*
 * Has the core's effects carried out: what is little here and now, more by the ledger's thread, and behind what that is
 * at. Sends what it has done. Negative when the ledger failed, or the core ran out of memory.
 */
int io_carry_out(struct io *io, struct fail *fail);
/* All of it, until nothing is left. */
int io_carry_out_all(struct io *io, struct fail *fail);
/* The ledger has chores, and time for a slice of them. */
bool io_has_chores(const struct io *io);
int io_do_chores(struct io *io, struct fail *fail);

/* ---- io/backup.c, io/layer_gc.c, io/disk.c, io/process.c ----------------------------------- */

/* Carries out BACK_UP, or refuses it. */
int io_back_up(struct io *io, const struct effect *effect, struct fail *fail);
/* The copy has been made, or could not be: says so to who asked. */
int io_end_backup(struct io *io, struct fail *fail);
void io_cancel_backup(struct io *io);

/* Begins where a store is given and the ledger is a file. */
int io_start_layer_gc(struct io *io, const struct io_options *options, struct fail *fail);
/* Once a second tells the core, and the log, what became of it. */
void io_watch_layer_gc(struct io *io, int64_t now_ms);

/* Of io/process.c: once, at the start; and before metrics.get is handled. */
void io_note_start(struct io *io);
void io_tell_process(struct io *io, int64_t now_ms);

/* Looks once a second; and with the ledger in hand. Negative when it cannot go on. */
void io_watch_disk(struct io *io, int64_t now_ms);
int io_tend_ledger(struct io *io, struct fail *fail);

#endif
