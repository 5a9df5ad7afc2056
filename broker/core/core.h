/*
 * core.h - the broker's mind: which rollout is where, and what to do next.
 *
 * It does no I/O and asks no clock. core_handle takes one decoded message and
 * `now`; core_tick does what is due and says when to be called again. Both append
 * effects to core->effects; the I/O side (io.h) carries them out in this order:
 *   1. every PERSIST_* effect, in one ledger transaction, committed;
 *   2. then all others, in the order they were emitted.
 * Of these, what promises something (to a client, to subscribers; LANE_SEND with is_promise) leaves when all of that
 * is durable.
 *
 * The core keeps no payload: tasks, layers, records and answers live in the
 * ledger; effects name them by group and rollout and the I/O side loads them.
 *
 * Slices in effects lie in memory of their own, which goes with them, or in the bytes of the message that was in
 * hand: the I/O side keeps messages until their effects are done. None lies in what the core may change.
 * `now_ms` is monotonic; `wall_ms` is only recorded.
 *
 * Invariants (core_check): each rollout is in exactly one place; counts equal
 * lengths; every lease has a living worker and a deadline; no worker holds more
 * than its slots; no queue is over its limit.
 */
#ifndef SLUICE_BROKER_CORE_CORE_H
#define SLUICE_BROKER_CORE_CORE_H

#include "broker/core/state/interface.h"
#include "broker/core/state/settings.h"
#include "schemas/messages/message.h"

struct core;

struct core_settings core_settings_default(void);

/* ---- life ------------------------------------------------------------------------ */

/* `epoch` is greater than any before. NULL when out of memory. */
struct core *core_create(const struct core_settings *settings, uint64_t epoch, int64_t now_ms);
void core_destroy(struct core **core);
/* What stream.head says of this start beside its epoch; nothing unless this is called. */
void core_set_start_id(struct core *core, uint64_t start_id);
/* PLACING_LIVE_TOKENS unless this is called. */
void core_set_placing(struct core *core, enum placing placing);

/*
 * Restoring, before the first message: what the ledger holds. Groups before their
 * rollouts. Restored jobs wait adopt_grace_ms for a worker's beat to adopt them.
 * A group restored with init_done has had PERSIST_INIT; a rollout with run_done PERSIST_RUN.
 * A rollout of which no row is told was acknowledged and is forgotten; a group whose task has
 * no id has only such ones left.
 */
struct core_group_row {
    struct slice group, stream;
    uint64_t samples, task_hash; /* task_hash: of stream, samples and task bytes, as core_handle makes it */
    struct core_task task;
    bool init_done;
    struct slice init_layer; /* digest or empty */
    uint64_t init_ms;
    uint64_t priority, lease_ms, accepted_ms; /* as PERSIST_GROUP told them */
};
struct core_rollout_row {
    struct slice rollout, group;
    uint64_t sample;
    bool run_done, ended;
    bool run_again; /* PERSIST_AGAIN, and its run has not ended since */
    enum outcome run_outcome;
    struct slice run_detail, engine;
    uint64_t run_ms;
    struct slice stream;   /* ended */
    uint64_t seq;          /* ended */
    uint64_t record_bytes; /* run_done, ended: of its record, where there is one */
    uint64_t ended_ms;     /* ended: when, by the ledger's clock */
};
bool core_restore_stream(struct core *core, struct slice stream, struct slice owner, uint64_t first, uint64_t head);
/* The highest version_number there ever was, which engines that are removed may have had; before the engines. */
void core_restore_versions(struct core *core, uint64_t highest);
/* Before the engines. */
bool core_restore_policy(struct core *core, const struct core_policy *row);
bool core_restore_engine(struct core *core, const struct core_engine *row);
/* Before the groups: about how many there are. */
bool core_restore_room(struct core *core, uint64_t groups);
bool core_restore_group(struct core *core, const struct core_group_row *row);
bool core_restore_rollout(struct core *core, const struct core_rollout_row *row);
/* After the rollouts. Of a job whose stage is over: nothing is done, true. */
bool core_restore_failures(struct core *core, const struct core_failures *failures);
/* After the rollouts, too. Of a job of another stage than the one at hand: nothing is done, true. */
bool core_restore_lease(struct core *core, const struct core_lease *lease);
/* After the streams; `answer`: of its current batch, or empty. */
bool core_restore_sampler(struct core *core, const struct core_sampler *row, struct slice answer);
/* After the samplers and the rollouts. */
bool core_restore_sampled(struct core *core, const struct core_sampled *row);
bool core_restore_early_cancel(struct core *core, struct slice name, struct slice owner, uint64_t clock_ms);
/* After the last row; false where the same group was told of twice, which core_restore_group may not see at once. */
bool core_restore_end(struct core *core);
/*
 * The ledger's clock at the restart, by which accepted_ms, ended_ms and an early cancel's time are understood and
 * which goes on with now_ms; call it first. Without it the wall clock of the first call is taken.
 */
void core_restore_clock(struct core *core, int64_t clock_ms);

/* ---- messages and time --------------------------------------------------------- */

/*
 * A message of a client (from FRONT) or of a worker (from SINK; caller->route is empty).
 * `in` is the decoded struct. For group.submit `task` holds the parsed summary, and what the
 * ledger knows of a group that the core does not remember; otherwise NULL. Never fails: a peer's mistake
 * becomes a `refused` effect, out of memory stops the process's intake (core_failed).
 */
void core_handle(struct core *core, int64_t now_ms, int64_t wall_ms, const struct caller *caller, enum message_id id,
                 const void *in, const struct core_task *task, uint64_t task_hash);

/* Whether a submit of this group needs no look into the past: the core knows it. */
bool core_remembers(const struct core *core, struct slice group);

/*
 * May this client read that stream's feed? A stream nobody has named yet becomes the caller's by
 * asking; an admin's asking does not make it so. False too when no more streams fit.
 */
bool core_may_read(struct core *core, const struct caller *caller, struct slice stream);
/* Whether there is such a stream, and it is the caller's to use. */
bool core_is_owner(const struct core *core, const struct caller *caller, struct slice stream);
/* Nobody listens to that feed (any more): a stream that was only ever asked for is free again. */
void core_nobody_reads(struct core *core, struct slice stream);

/* The disk of the ledger is nearly full (or no longer): submits are refused meanwhile. */
void core_disk_is_low(struct core *core, bool is_low);

/* To be told before each metrics.get. */
void core_tell_process(struct core *core, const struct core_process *process);

void core_tell_store(struct core *core, const struct core_store *store);

/* A message of a worker, `from` by its key's name or "", could not be read, and why. */
void core_tell_unread(struct core *core, int64_t now_ms, struct slice from, struct slice why);

/* So many batches of events, for so many viewers, were dropped. */
void core_tell_live_dropped(struct core *core, uint64_t count);

/*
 * A lane's connection broke (socket monitor): the worker is lost at once. False where nothing is lost: it had
 * drained, or is not known.
 */
bool core_lane_broke(struct core *core, int64_t now_ms, struct slice worker);
/* Its lane does not lead there yet, and why: it is given no jobs meanwhile. `why` empty: now it does. */
void core_lane_waits(struct core *core, int64_t now_ms, struct slice worker, struct slice why);

/*
 * The broker itself stood still for so long until now. Workers, deadlines and leases get that
 * time back: what they sent meanwhile has not been read yet. Call it before what is read now.
 */
void core_stalled(struct core *core, int64_t now_ms, int64_t stalled_ms);
/* It did not, but nothing left for so long until now: a job that its worker does not list may not have been sent. */
void core_held_up(struct core *core, int64_t now_ms, int64_t held_up_ms);

/* Does what is due; returns when to be called again at the latest (monotonic ms). */
int64_t core_tick(struct core *core, int64_t now_ms, int64_t wall_ms);

/* Hands out what can be handed out; call once per cycle, after the cycle's messages. */
void core_dispatch(struct core *core, int64_t now_ms);

/* What there is; and all of it was carried out. */
struct effects core_effects(const struct core *core);
void core_effects_clear(struct core *core);
/*
 * For who carries effects out while the core goes on: all there are move to `list`, whose memory is the core's next (it
 * is all zero, or was cleared). Before more are taken, core_effects_done says that they are carried out, as far as the
 * ledger is meant: the core may now forget names that it will ask the ledger for.
 */
void core_effects_take(struct core *core, struct effect_list *list);
void core_effects_done(struct core *core);
/* How often a lane was to be opened or closed, ever. */
uint64_t core_lane_changes(const struct core *core);
void effect_list_clear(struct effect_list *list);
void effect_list_finish(struct effect_list *list);

/* True once an allocation failed: the I/O side stops without acknowledging anything more. */
bool core_failed(const struct core *core);

/* Verifies the invariants; NULL, or a static sentence saying what is broken. Slow; for tests. */
const char *core_check(const struct core *core);

/* The status message's JSON appended to `out`. */
bool core_status(const struct core *core, int64_t now_ms, struct buffer *out);
/* The metrics message's text appended to `out`. */
bool core_metrics(const struct core *core, bool is_openmetrics, struct buffer *out);

#endif
