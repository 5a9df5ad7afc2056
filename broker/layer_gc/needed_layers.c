#include "broker/layer_gc/needed_layers.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "broker/ledger/inner.h"
#include "common/base/cleanup.h"

enum { STEPS_PER_LOOK = 1000, BUSY_MS = 30000 };

/* A layer that is in the store: the group's, `parts` of whose rollouts have not ended, or the one
 * rollout's. */
struct row {
    int64_t number;
    struct layer_digest digest;
    int64_t parts;
};

struct rows { /* in the order of numbers */
    struct row *items;
    size_t count, capacity;
};

struct reading {
    sqlite3 *db;
    struct rows inits, runs;
    const atomic_bool *stop;
    struct fail *fail;
};

bool layer_digest_parse(const char *hex, struct layer_digest *ret)
{
    for (size_t i = 0; i < 2 * LAYER_DIGEST_BYTES; i++) {
        const char *digits = "0123456789abcdef", *digit = hex[i] ? strchr(digits, hex[i]) : NULL;
        if (!digit)
            return false;
        uint8_t *byte = &ret->bytes[i / 2];
        *byte = (uint8_t)(*byte << 4 | (digit - digits));
    }
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void count_end(struct rows *rows, int64_t number)
{
    struct row *row = rows->count ? bsearch(&(struct row){.number = number}, rows->items, rows->count,
                                            sizeof(*rows->items), compare_numbers)
                                  : NULL;
    if (row)
        row->parts--;
}

static bool add_row(struct rows *rows, const struct row *row)
{
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? rows->capacity * 2 : 1024;
        struct row *more = reallocarray(rows->items, capacity, sizeof(*more));
        if (!more)
            return false;
        rows->items = more;
        rows->capacity = capacity;
    }
    rows->items[rows->count++] = *row;
    return true;
}

static bool take_init(struct reading *reading, sqlite3_stmt *statement)
{
    struct row row = {.number = sqlite3_column_int64(statement, 0), .parts = sqlite3_column_int64(statement, 2)};
    const char *digest = (const char *)sqlite3_column_text(statement, 1);
    bool is_named = digest && strncmp(digest, "sha256:", 7) == 0;
    return !is_named || !layer_digest_parse(digest + 7, &row.digest) || add_row(&reading->inits, &row);
}

static bool take_run(struct reading *reading, sqlite3_stmt *statement)
{
    struct row row = {.number = sqlite3_column_int64(statement, 0), .parts = 1};
    const char *digest = (const char *)sqlite3_column_text(statement, 1);
    bool is_named = digest && strncmp(digest, "sha256:", 7) == 0;
    return !is_named || !layer_digest_parse(digest + 7, &row.digest) || add_row(&reading->runs, &row);
}

static bool take_end(struct reading *reading, sqlite3_stmt *statement)
{
    int64_t rollout = sqlite3_column_int64(statement, 0);
    count_end(&reading->inits, rollout / ROLLOUTS_PER_GROUP);
    count_end(&reading->runs, rollout);
    return true;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int broke(struct reading *reading, int code)
{
    if (atomic_load(reading->stop))
        return fail_set(reading->fail, -ECANCELED, "stopped");
    return fail_set(reading->fail, (code & 0xff) == SQLITE_NOMEM ? -ENOMEM : -EIO, "cannot read the ledger: %s",
                    sqlite3_errmsg(reading->db));
}

/* Runs a statement and hands each row to `take`. */
static int read_all(struct reading *reading, const char *sql,
                    bool (*take)(struct reading *reading, sqlite3_stmt *statement))
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(reading->db, sql, -1, &statement, NULL);
    bool is_taken = true;
    if (code == SQLITE_OK)
        while (is_taken && (code = sqlite3_step(statement)) == SQLITE_ROW)
            is_taken = take(reading, statement);
    int result = !is_taken             ? fail_set(reading->fail, -ENOMEM, "out of memory")
                 : code == SQLITE_DONE ? 0
                                       : broke(reading, code);
    sqlite3_finalize(statement);
    return result;
}

static void sort_rows(struct rows *rows)
{
    if (rows->count)
        qsort(rows->items, rows->count, sizeof(*rows->items), compare_numbers);
}

/* All of one moment; the indexes inits_stored and runs_stored hold just these rows. */
static int read_rows(struct reading *reading)
{
    int code = read_all(reading, "BEGIN", take_end);
    if (code == 0)
        code = read_all(reading,
                        "SELECT i.number, i.digest, g.samples FROM inits i JOIN groups g"
                        " ON g.number = i.number WHERE i.digest IS NOT NULL AND i.layer IS NULL",
                        take_init);
    if (code == 0)
        code = read_all(reading,
                        "SELECT rollout, digest FROM runs WHERE digest IS NOT NULL AND"
                        " layer IS NULL",
                        take_run);
    sort_rows(&reading->inits);
    sort_rows(&reading->runs);
    if (code == 0 && reading->inits.count + reading->runs.count)
        code = read_all(reading, "SELECT rollout FROM ends UNION ALL SELECT rollout FROM forgotten", take_end);
    return code;
}

static int look_up_from_time_to_time(void *stop) { return atomic_load((const atomic_bool *)stop); }

static int open_ledger(struct reading *reading, const char *path)
{
    int code = sqlite3_open_v2(path, &reading->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return broke(reading, code);
    sqlite3_busy_timeout(reading->db, BUSY_MS);
    sqlite3_progress_handler(reading->db, STEPS_PER_LOOK, look_up_from_time_to_time, (void *)(uintptr_t)reading->stop);
    return read_all(reading, "PRAGMA query_only = 1", take_end);
}

/* ---- the answer ----------------------------------------------------------------------------- */

static int compare_digests(const void *a, const void *b) { return memcmp(a, b, LAYER_DIGEST_BYTES); }

static void add_needed(struct needed_layers *needed, const struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].parts > 0)
            needed->digests[needed->count++] = rows->items[i].digest;
}

static int conclude(const struct reading *reading, struct needed_layers *ret)
{
    struct needed_layers needed = {0};
    size_t most = reading->inits.count + reading->runs.count;
    needed.digests = malloc((most ? most : 1) * sizeof(*needed.digests));
    if (!needed.digests)
        return fail_set(reading->fail, -ENOMEM, "out of memory");
    add_needed(&needed, &reading->inits);
    add_needed(&needed, &reading->runs);
    if (needed.count)
        qsort(needed.digests, needed.count, sizeof(*needed.digests), compare_digests);
    *ret = needed;
    return 0;
}

int needed_layers_read(const char *ledger_path, const atomic_bool *stop, struct needed_layers *ret, struct fail *fail)
{
    struct reading reading = {.stop = stop, .fail = fail};
    int code = open_ledger(&reading, ledger_path);
    if (code == 0)
        code = read_rows(&reading);
    if (code == 0)
        code = conclude(&reading, ret);
    sqlite3_close(reading.db);
    free(reading.inits.items);
    free(reading.runs.items);
    return code;
}

bool needed_layers_has(const struct needed_layers *needed, const struct layer_digest *digest)
{
    return needed->count && bsearch(digest, needed->digests, needed->count, sizeof(*digest), compare_digests);
}

void needed_layers_finish(struct needed_layers *needed)
{
    free(take_ptr(&needed->digests));
    needed->count = 0;
}
