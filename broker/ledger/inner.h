/*
 * ledger/inner.h - what the ledger's own files share: the open database, its
 * prepared statements, values going in and columns coming out, and the cache of
 * groups that are at work.
 */
#ifndef SLUICE_BROKER_LEDGER_INNER_H
#define SLUICE_BROKER_LEDGER_INNER_H

#include <sqlite3.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "broker/ledger/ledger.h"
#include "broker/ledger/files/lock.h"
#include "broker/ledger/files/syncer.h"
#include "schemas/messages/message_max.h"

enum ledger_statement {
#define TABLE(sql)
#define UPGRADE(version, sql)
#define STATEMENT(name, sql) LEDGER_##name,
#include "broker/ledger/ledger.def"
#undef TABLE
#undef UPGRADE
#undef STATEMENT
    LEDGER_STATEMENT_COUNT
};

enum {
    LEDGER_VERSION = 20, /* of the tables: the file's user_version */
    ROLLOUTS_PER_GROUP = 1024,
    CACHE_ENTRIES = 16384,
    CACHE_WAYS = 4,              /* entries that an id may be in */
    CACHE_REUSED_MAX = 4096,     /* an entry keeps this much memory for its next group */
    CACHE_PAYLOAD_MAX = 1 << 20, /* a layer larger than this is read from the file each time; no task is */
    CACHE_BYTES_MAX = 64 << 20,
    RUN_BYTES_MAX = 64 << 10, /* a run larger than this is read from its row each time */
    RUNS_BYTES_MAX = 32 << 20,
    LEDGER_BUSY_MS = 1000, /* for so long a lock that somebody holds is waited for */
    LEDGER_PAGE_BYTES = 8192
};

/* Numbers of `meta`, which only grow: of this start, and the highest of a policy's version. */
#define META_EPOCH slice_from_str("epoch")
#define META_VERSIONS slice_from_str("versions")

/*
 * groups.has_metadata: NULL where a task has none; 1 of a broker that gave it to the workers of every stage; else 8 and
 * the bits of core_task.shown_in.
 */
static inline int64_t metadata_note(unsigned shown_in) { return 8 | shown_in; }
static inline unsigned metadata_shown_in(int64_t note) { return note & 8 ? note & 7 : 7; }

/* A run whose rollout's end has not been published. */
struct held_run {
    TAILQ_ENTRY(held_run) links; /* of all, the one that came first, first */
    LIST_ENTRY(held_run) of_group;
    int64_t sample;
    uint64_t end_seq; /* of its rollout's end; 0: it has not ended */
    bool has_length, truncated;
    uint64_t sampled_tokens;
    struct slice digest, answer, layer, record; /* within `bytes`, empty where the row has NULL */
    size_t len;
    uint8_t bytes[];
};

/* One group's number and, where small enough, its payload. `task.len` 0: not held. */
struct cached_group {
    TAILQ_ENTRY(cached_group) links; /* of those that hold something, the one that was filled longest ago first */
    int64_t number, stream;          /* number 0: an empty entry */
    int64_t samples;
    LIST_HEAD(, held_run) runs;
    struct buffer task, layer;
    struct buffer bare;    /* the task without its metadata; empty: every stage is given all of it */
    struct slice metadata; /* within `task` */
    unsigned shown_in;     /* as core_task has it */
    bool is_listed;
    uint64_t given; /* when, counted in entries that were given to an id */
    bool has_init;  /* digest and layer are known, be they empty */
    char id[MESSAGE_MAX(group_submit, group) + 1], digest[MESSAGE_MAX(job_result, layer_digest) + 1];
};

struct ledger {
    sqlite3 *db;
    sqlite3_stmt *statements[LEDGER_STATEMENT_COUNT];
    enum ledger_durability durability;
    char *path, *wal_path;
    struct stat found; /* of the file that was opened */
    struct lock lock;
    struct fail broken; /* once set, the answer to everything */
    bool sweep_due;
    bool can_shrink, shrink_due, is_shrinking; /* free pages back to the disk */
    bool cut_due;                              /* the log is to be brought home whole, and cut */
    bool is_held;                              /* a reader was in the way of that: tried again at the next look */
    bool is_tight;                             /* the disk is low */
    int64_t next_group;
    uint64_t forgotten_max;
    int wal_pages, wal_longest; /* in the log now, and most since it was cut last */
    struct syncer *syncer;      /* NULL: what is committed needs no sync */
    int wal_fd;                 /* of its own; -1: none */
    struct commit_point committed;
    struct commit_point durable; /* and `asked`, to be so: of the thread that asks, not of the one that commits */
    uint64_t asked;
    struct cached_group *cache;
    uint64_t cache_hashes[CACHE_ENTRIES]; /* of each entry's id, side by side: of most entries no more is looked at */
    TAILQ_HEAD(cached_groups, cached_group) cached;
    size_t cache_bytes;
    uint64_t cache_given;
    TAILQ_HEAD(held_runs, held_run) runs;
    size_t runs_bytes;
    struct held_run *published; /* what was loaded of it is borrowed; NULL: nothing */
    char stream_name[MESSAGE_MAX(group_submit, stream) +
                     1]; /* the stream asked for last, its number, and the owner it was given */
    int64_t stream_number;
    char stream_owner[65];
    bool has_owner;
    char rollout[160]; /* text of the rollout a load returned */
};

/* ---- ledger/sql.c -------------------------------------------------------------------- */

struct value {
    enum { VALUE_NONE, VALUE_NUMBER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB } type;
    union {
        int64_t number;
        double real;
        struct slice bytes;
    };
};
#define NOTHING ((struct value){.type = VALUE_NONE})
#define NUMBER(n) ((struct value){.type = VALUE_NUMBER, .number = (int64_t)(n)})
#define REAL(r) ((struct value){.type = VALUE_REAL, .real = (r)})
#define TEXT(s) ((struct value){.type = VALUE_TEXT, .bytes = (s)})
#define BLOB(s) ((struct value){.type = VALUE_BLOB, .bytes = (s)})
/* An empty one is stored as NULL. */
#define MAYBE_TEXT(s) ((struct value){.type = (s).len ? VALUE_TEXT : VALUE_NONE, .bytes = (s)})
#define MAYBE_BLOB(s) ((struct value){.type = (s).len ? VALUE_BLOB : VALUE_NONE, .bytes = (s)})

/* Opens the database and writes nothing. */
int ledger_sql_open(struct ledger *ledger, const char *path, struct fail *fail);
/* Sets the durability and prepares every statement. */
int ledger_sql_start(struct ledger *ledger, struct fail *fail);
void ledger_sql_close(struct ledger *ledger);
int ledger_sql_run(struct ledger *ledger, const char *sql, struct fail *fail);
/* Remembers and says what SQLite refused. `code` is its result code. */
int ledger_broke(struct ledger *ledger, int code, struct fail *fail);
/* The same for damage that we found ourselves. */
int ledger_damaged(struct ledger *ledger, const char *detail, struct fail *fail);
/* Says of a sync of our own what failed; `code` is its negative errno. */
int ledger_say_sync(const struct ledger *ledger, int code, struct fail *fail);

/* Resets, binds and steps: 1 a row is there (read it, then ledger_reset), 0 done, negative failed. */
int ledger_ask(struct ledger *ledger, enum ledger_statement statement, const struct value *values, size_t count,
               struct fail *fail);
int ledger_next(struct ledger *ledger, enum ledger_statement statement, struct fail *fail);
void ledger_reset(struct ledger *ledger, enum ledger_statement statement);
/* Lets go of whatever a load still borrows. */
void ledger_release(struct ledger *ledger);

#define VALUES(...)                                                                                                    \
    (const struct value[]){__VA_ARGS__}, sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)
/* Runs a statement that gives no rows. */
#define ledger_do(ledger, statement, fail, ...) ledger_do_values(ledger, statement, VALUES(__VA_ARGS__), fail)
int ledger_do_values(struct ledger *ledger, enum ledger_statement statement, const struct value *values, size_t count,
                     struct fail *fail);
/*
 * Writes a row of ledger.def that is most likely new. INSERT OR REPLACE alone would do, but a table with an index has
 * every page that it changes copied first, in case it has to be undone.
 */
#define ledger_add(ledger, row, fail, ...)                                                                             \
    ledger_add_values(ledger, LEDGER_ADD_##row, LEDGER_REPLACE_##row, VALUES(__VA_ARGS__), fail)
int ledger_add_values(struct ledger *ledger, enum ledger_statement add, enum ledger_statement replace,
                      const struct value *values, size_t count, struct fail *fail);

int64_t ledger_number(struct ledger *ledger, enum ledger_statement statement, int column);
double ledger_real(struct ledger *ledger, enum ledger_statement statement, int column);
bool ledger_is_null(struct ledger *ledger, enum ledger_statement statement, int column);
/* Borrowed until the statement is stepped or reset; empty for NULL. */
struct slice ledger_slice(struct ledger *ledger, enum ledger_statement statement, int column);

/* ---- ledger/files/mark.c ----------------------------------------------------------------------- */

/* What the lock's file says of the broker before this one, and with which durability. */
enum ledger_left { LEDGER_WAS_CLOSED, LEDGER_WAS_OPEN_PROCESS, LEDGER_WAS_OPEN_FULL };
enum ledger_left ledger_state_left(const struct ledger *ledger);
/* Notes there whether there is a -wal that must be there at the next start. */
int ledger_mark(struct ledger *ledger, bool is_open, struct fail *fail);
/* Notes there up to where the log is durable: for a start after a power cut, when it may say less than is true. */
void ledger_mark_durable(struct ledger *ledger);
/* What was noted so last; frames 0: nothing. */
struct commit_point ledger_marked_durable(const struct ledger *ledger);

/* ---- ledger/files/file.c, ledger/files/wal.c, ledger/schema.c: opening ------------------------------ */

/* Before it is opened: makes a new file, or sees that none has gone. */
int ledger_file_prepare(struct ledger *ledger, const char *dir, struct fail *fail);
/* Once it is open: may it be written, and is it whole? Large files only if `all`. */
int ledger_file_check(struct ledger *ledger, bool all, struct fail *fail);
/* -EBADMSG with a detail: commits that were acknowledged, up to `durable`, cannot be read from it. */
int ledger_wal_check(const char *path, const struct commit_point *durable, char *ret_detail, size_t size,
                     struct fail *fail);
int ledger_schema_make(struct ledger *ledger, struct fail *fail);
int ledger_schema_upgrade(struct ledger *ledger, struct fail *fail);

/* ---- ledger/durable.c --------------------------------------------------------------------- */

/* Negative once a sync has failed: nothing more is to be written. */
int ledger_mind_syncs(struct ledger *ledger, struct fail *fail);
/* Once the log is there: from now on commits are counted and, where the durability says so, synced when asked for. */
int ledger_start_syncing(struct ledger *ledger, struct fail *fail);

/* ---- ledger/transactions.c ---------------------------------------------------------------- */

/* Commits, or ends reading, and no more. ledger_begin is its counterpart. */
int ledger_end(struct ledger *ledger, struct fail *fail);

/* ---- ledger.c, ledger/chores.c ------------------------------------------------------------ */

int ledger_checkpoint(struct ledger *ledger, struct fail *fail);
/* After a commit: brings a log home that has grown too long to wait for an idle moment. */
int ledger_mind_log(struct ledger *ledger, struct fail *fail);

/* ---- ledger/rows/cache.c ---------------------------------------------------------------- */

bool ledger_cache_init(struct ledger *ledger);
void ledger_cache_finish(struct ledger *ledger);
/* The entry for an id: its own (number > 0), or one emptied for it (number 0). */
struct cached_group *ledger_cache_get(struct ledger *ledger, struct slice id);
/* NULL: its entry is another's. Nothing is emptied for it. */
const struct cached_group *ledger_cache_peek(const struct ledger *ledger, struct slice id);
/* `metadata` is a part of the task, or empty. */
void ledger_cache_task(struct ledger *ledger, struct cached_group *group, struct slice task, struct slice metadata,
                       unsigned shown_in);
/* What a stage is given of the task; empty: the cache does not hold it. */
struct slice ledger_cache_task_for(const struct cached_group *group, enum stage stage);
void ledger_cache_init_layer(struct ledger *ledger, struct cached_group *group, struct slice digest,
                             struct slice layer);
void ledger_cache_drop(struct ledger *ledger, struct slice id);

/* ---- ledger/rows/runs.c: runs in hand ----------------------------------------------------- */

/* What PERSIST_RUN says, in place of what it said before; nothing is held where there is no memory. */
void ledger_hold_run(struct ledger *ledger, struct cached_group *group, int64_t sample, const struct effect *effect);
/* NULL: it is not in hand. */
struct held_run *ledger_held_run(const struct cached_group *group, int64_t sample);
void ledger_let_run_go(struct ledger *ledger, struct held_run *run);
void ledger_let_runs_go(struct ledger *ledger, struct cached_group *group);

/* ---- lookups that read through the cache: -ENOENT where there is none ------------------- */

int ledger_find_group(struct ledger *ledger, struct slice id, struct cached_group **ret, struct fail *fail);
/* Fills an entry from its group's row. */
int ledger_keep_group(struct ledger *ledger, struct cached_group *group, struct slice id, struct fail *fail);
int ledger_find_stream(struct ledger *ledger, struct slice name, int64_t *ret, struct fail *fail);
/* "<group>/<sample>": its group, and its number there. */
int ledger_find_sample(struct ledger *ledger, struct slice rollout, struct cached_group **ret, int64_t *ret_sample,
                       struct fail *fail);

static inline int64_t number_of_rollout(const struct cached_group *group, int64_t sample)
{
    return group->number * ROLLOUTS_PER_GROUP + sample;
}

/* Keys of `troubles` and `leases`: after a rollout's comes the next one's, after the last the init's. */
static inline int64_t failures_of_rollout(int64_t rollout) { return 2 * rollout; }
static inline int64_t failures_of_init(int64_t group)
{
    return 2 * (group * ROLLOUTS_PER_GROUP + ROLLOUTS_PER_GROUP - 1) + 1;
}

/* ---- ledger/rows/samplers.c: inside a transaction, and while all is told ----------------------- */

int ledger_apply_sampler(struct ledger *ledger, const struct effect *effect, int64_t stream, struct fail *fail);
int ledger_apply_sampled(struct ledger *ledger, const struct effect *effect, int64_t stream, struct fail *fail);
int ledger_apply_batch(struct ledger *ledger, const struct effect *effect, int64_t stream, struct fail *fail);
int ledger_tell_samplers(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail);

/* ---- ledger/rows/summary.c -------------------------------------------------------------------- */

enum { SUMMARY_BYTES_MAX = 8192 };
/* In `ret`; empty: it does not fit. */
struct slice ledger_summary_pack(const struct core_task *task, uint8_t *ret, size_t size);
/* False: it is not one. What slices there are point into `bytes`. */
bool ledger_summary_unpack(struct slice bytes, struct core_task *ret);

/* ---- ledger/rows/past.c ---------------------------------------------------------------------- */

/* Inside a transaction: of groups that are forgotten and beyond the number kept by id, one keeps a digest only. */
int ledger_trim_group(struct ledger *ledger, struct fail *fail);

/* ---- ledger/rows/sweep.c ------------------------------------------------------------------ */

/* Inside a transaction: forgets up to `limit` acknowledged rollouts; clears sweep_due at the end. */
int ledger_sweep(struct ledger *ledger, unsigned limit, struct fail *fail);

#endif
