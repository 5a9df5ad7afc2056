/*
 * ledger.h - the broker's memory on disk: <dir>/ledger.db, SQLite in WAL mode, and
 * <dir>/lock, which keeps a second broker out. The file has no other name, and is locked itself.
 *
 * A batch's PERSIST_* effects are one transaction: begin, apply each, commit. What is committed survives
 * the process, and what is durable, by ledger_durable, whatever the durability says: a thread of the ledger's
 * syncs while its owner goes on, when it is asked to. A power cut takes commits away from the end only. A failed write,
 * sync or read is final (-ENOSPC, -EIO, -EBADMSG for a damaged file): the ledger
 * then refuses everything, and its owner stops; a sync is never tried twice, and a
 * damaged file is left as it is.
 *
 * Belongs to one thread at a time, its owner's. Acknowledged rollouts are swept in bounded slices, by commits
 * and by ledger_do_chores. Of groups that are forgotten the last ones are kept by id, and of
 * all before them a digest of the id, for as long as the ledger lives, so that a submit of the
 * same group is known however late it comes.
 */
#ifndef SLUICE_BROKER_LEDGER_LEDGER_H
#define SLUICE_BROKER_LEDGER_LEDGER_H

#include "broker/core/core.h"
#include "broker/ledger/commit_point.h"
#include "broker/ledger/moment.h"
#include "common/base/fail.h"

struct ledger;

enum ledger_durability {
    LEDGER_FULL,    /* a commit survives a power cut */
    LEDGER_PROCESS, /* it survives the broker's end, kill -9 included, but no power cut */
    LEDGER_NONE     /* nothing survives: no file is made */
};

struct ledger_options {
    const char *dir;
    enum ledger_durability durability;
    bool check_all;         /* read all of the file at open, however large */
    uint64_t forgotten_max; /* groups kept by id; 0: FORGOTTEN_MAX */
};

/*
 * Makes the directory and the file where they are not there yet, and brings a file of an
 * earlier version up to this one; -EPROTO: the file is of a later one.
 */
int ledger_open(struct ledger **ret, const struct ledger_options *options, struct fail *fail);
/* Checkpoints unless something failed; what was not committed is not kept. NULL-safe. */
void ledger_close(struct ledger **ledger);

/* A number greater than any before, on disk before this returns. */
int ledger_next_epoch(struct ledger *ledger, uint64_t *ret, struct fail *fail);

/*
 * What the ledger's own clock says now (milliseconds since 1970, at first), on disk before this
 * returns; once, before the restore. To be noted again about once a minute, so that what passed
 * before a reboot is known.
 */
int ledger_start_clock(struct ledger *ledger, const struct moment *now, int64_t *ret_clock_ms, struct fail *fail);
int ledger_note_clock(struct ledger *ledger, const struct moment *now, int64_t clock_ms, struct fail *fail);

/* The highest version_number that any engine ever had; 0: none had one. */
int ledger_get_versions(struct ledger *ledger, uint64_t *ret, struct fail *fail);

/*
 * Tells a reader all there is: streams, policies, engines, groups, each group's rollouts after
 * it and then what went wrong with them, samplers and then their groups, early cancels. Rollouts that have
 * not ended, or ended and are kept, are told; a group of which no rollout is told is forgotten; failures of what
 * has ended are not told. Early cancels older than `early_cancels_since_ms` are dropped. Slices are good during
 * the call. A callback's false ends it with -ENOMEM.
 */
struct ledger_reader {
    void *context;
    uint64_t early_cancels_since_ms; /* by the ledger's clock */
    bool (*stream)(void *context, struct slice name, struct slice owner, uint64_t first, uint64_t head);
    bool (*engine)(void *context, const struct core_engine *row);
    bool (*group)(void *context, const struct core_group_row *row);
    bool (*rollout)(void *context, const struct core_rollout_row *row);
    bool (*failures)(void *context, const struct core_failures *failures);
    bool (*lease)(void *context, const struct core_lease *lease);
    bool (*early_cancel)(void *context, struct slice name, struct slice owner, uint64_t clock_ms);
    bool (*policy)(void *context, const struct core_policy *row); /* before the engines; NULL: not wanted */
    bool (*sampler)(void *context, const struct core_sampler *row, struct slice answer); /* NULL: not wanted, nor ... */
    bool (*sampled)(void *context, const struct core_sampled *row);                      /* ... are these, then */
    bool (*room)(void *context, uint64_t groups); /* before the groups: about how many; NULL: not wanted */
    bool (*end)(void *context);                   /* after all; NULL: not wanted */
};
int ledger_restore(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail);

int ledger_begin(struct ledger *ledger, struct fail *fail);
int ledger_apply(struct ledger *ledger, const struct effect *effect, struct fail *fail);
/* Also brings the write-ahead log home when it has grown very large. */
int ledger_commit(struct ledger *ledger, struct fail *fail);

/* The last commit. */
struct commit_point ledger_committed(const struct ledger *ledger);
/* Makes all durable that is committed, and waits for it. */
int ledger_sync(struct ledger *ledger, struct fail *fail);

/* ---- durability: of these another thread may ask while one commits, if it is always the same ---- */

/* Has what was committed up to `point` made durable; ledger_durable tells when it is. */
void ledger_ask_durable(struct ledger *ledger, const struct commit_point *point);
/* The same, and waits for it. */
int ledger_await_durable(struct ledger *ledger, const struct commit_point *point, struct fail *fail);
/* The number of the last commit that is durable; UINT64_MAX: each is at once. Negative: a sync failed. */
int ledger_durable(struct ledger *ledger, uint64_t *ret, struct fail *fail);
/* Readable when ledger_durable has news; -1: it never has. */
int ledger_sync_fd(const struct ledger *ledger);

/* ---- looking ------------------------------------------------------------------------------------ */

/*
 * Was a group of this id ever committed? 1: of the content that *ret_hash says (task_summary_hash);
 * 0: never. Whatever was forgotten since; cheaper between read_begin and read_end.
 */
int ledger_find_past(struct ledger *ledger, struct slice id, uint64_t *ret_hash, struct fail *fail);

/* 0, or what the ledger failed with: it refuses everything since. */
int ledger_standing(const struct ledger *ledger, struct fail *fail);

/* Loads between read_begin and read_end share one snapshot, which is cheaper than one each. */
int ledger_read_begin(struct ledger *ledger, struct fail *fail);
int ledger_read_end(struct ledger *ledger, struct fail *fail);

/*
 * A LANE_JOB effect as the message to send, or a kept trajectory (tag not set). What
 * *ret points to is borrowed until the next call of any ledger function, and from the
 * effect. -ENOENT: not there (any more).
 */
int ledger_load_job(struct ledger *ledger, const struct effect *effect, struct msg_job_start *ret, struct fail *fail);
/* Each ended rollout that `list` asks for, newest first, without its record; what the row points to is borrowed. */
typedef void ledger_row(void *arg, const struct msg_trajectory *row, struct slice image);
int ledger_list(struct ledger *ledger, struct slice stream, const struct core_list *list, ledger_row *take, void *arg,
                struct fail *fail);
int ledger_load_trajectory(struct ledger *ledger, struct slice stream, uint64_t seq, struct msg_trajectory *ret,
                           struct fail *fail);
/* The same of a PUBLISH_TRAJECTORY effect, made of it and of what is in hand where that is all. */
int ledger_load_published(struct ledger *ledger, const struct effect *effect, struct msg_trajectory *ret,
                          struct fail *fail);

/*
 * To be called about once a second. Are the files where they were? -ESTALE: one is not, what it
 * held was saved as the sentence says, and the owner stops.
 */
int ledger_look(struct ledger *ledger, struct fail *fail);

/* The disk is low (or no longer): all that is free in the files goes back to it. */
void ledger_be_tight(struct ledger *ledger, bool is_tight);

/* Acknowledged rows to sweep, a log grown enough to be brought home, or free pages to give back. */
bool ledger_has_chores(const struct ledger *ledger);
/* Does a slice of that; for a moment when there is nothing else to do. */
int ledger_do_chores(struct ledger *ledger, struct fail *fail);

#endif
