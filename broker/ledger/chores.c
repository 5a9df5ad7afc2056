/*
 * What can wait until there is nothing else to do: sweeping, bringing the write-ahead log
 * home, and giving free pages back to the disk. Each in slices, so that a commit that comes
 * meanwhile waits for one slice at most. A file and its log get shorter only when the log is
 * brought home whole: that follows the last slice of shrinking, and a log that had grown long.
 * What a reader (a back-up) is in the way of waits until the next look.
 */
#include "broker/ledger/inner.h"

enum {
    SWEEP_PER_CHORE = 256,
    WAL_BUSY_PAGES = 32768, /* 256 MiB: brought home whatever there is to do ... */
    WAL_IDLE_PAGES = 1000,  /* ... and 8 MiB when there is nothing else, or the disk is low */
    WAL_LONG_PAGES = 4096,  /* 32 MiB: a log that was so long is cut */
    WAL_TIGHT_PAGES = 128,  /* the same where the disk is low */
    SHRINK_FREE_MIN = 1024, /* 8 MiB of free pages are kept for what comes next ... */
    SHRINK_TIGHT_MIN = 64   /* ... but not where the disk is low */
};

static int checkpoint(struct ledger *ledger, int mode, struct fail *fail)
{
    int pages = 0, home = 0;
    int code = sqlite3_wal_checkpoint_v2(ledger->db, NULL, mode, &pages, &home);
    ledger->wal_pages = 0;
    ledger->is_held = code == SQLITE_BUSY || home < pages;
    if (code == SQLITE_OK || code == SQLITE_BUSY) /* busy: somebody reads; a later one does it */
        return 0;
    return ledger_broke(ledger, code, fail);
}

int ledger_checkpoint(struct ledger *ledger, struct fail *fail)
{
    ledger->cut_due |= ledger->wal_longest > WAL_LONG_PAGES;
    return checkpoint(ledger, SQLITE_CHECKPOINT_PASSIVE, fail);
}

int ledger_mind_log(struct ledger *ledger, struct fail *fail)
{
    int most = ledger->is_tight && !ledger->is_held ? WAL_IDLE_PAGES : WAL_BUSY_PAGES;
    return ledger->wal_pages > most ? ledger_checkpoint(ledger, fail) : 0;
}

/* Waits for nobody. */
static int cut(struct ledger *ledger, struct fail *fail)
{
    sqlite3_busy_timeout(ledger->db, 0);
    int code = checkpoint(ledger, SQLITE_CHECKPOINT_TRUNCATE, fail);
    sqlite3_busy_timeout(ledger->db, LEDGER_BUSY_MS);
    if (code == 0 && !ledger->is_held) {
        ledger->cut_due = false;
        ledger->wal_longest = 0;
    }
    return code;
}

void ledger_be_tight(struct ledger *ledger, bool is_tight)
{
    if (is_tight == ledger->is_tight)
        return;
    ledger->is_tight = is_tight;
    ledger->shrink_due = ledger->can_shrink;
    ledger->cut_due |= is_tight && ledger->wal_longest > WAL_TIGHT_PAGES;
}

bool ledger_has_chores(const struct ledger *ledger)
{
    bool has_long_ones = ledger->shrink_due || ledger->cut_due || ledger->wal_pages > WAL_IDLE_PAGES;
    return ledger->sweep_due || (has_long_ones && !ledger->is_held);
}

static int sweep_alone(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    if (code == 0)
        code = ledger_sweep(ledger, SWEEP_PER_CHORE, fail);
    return code ? code : ledger_end(ledger, fail);
}

/* Begun above a quarter of the file, and gone on with down to an eighth; to the end where the disk is low. */
static int look_at_free_pages(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_COUNT_PAGES, NULL, 0, fail);
    if (code <= 0)
        return code;
    int64_t free_pages = ledger_number(ledger, LEDGER_COUNT_PAGES, 0);
    int64_t pages = ledger_number(ledger, LEDGER_COUNT_PAGES, 1);
    ledger_reset(ledger, LEDGER_COUNT_PAGES);
    bool was_shrinking = ledger->is_shrinking;
    bool is_much = free_pages > SHRINK_FREE_MIN && free_pages > pages / (was_shrinking ? 8 : 4);
    ledger->is_shrinking = ledger->is_tight ? free_pages > SHRINK_TIGHT_MIN : is_much;
    ledger->shrink_due = ledger->is_shrinking;
    ledger->cut_due |= (was_shrinking && !ledger->is_shrinking) ||
                       (ledger->is_tight && ledger->wal_longest > WAL_TIGHT_PAGES);
    return 0;
}

static int shrink(struct ledger *ledger, struct fail *fail)
{
    int code = look_at_free_pages(ledger, fail);
    if (code || !ledger->is_shrinking)
        return code;
    code = ledger_ask(ledger, LEDGER_SHRINK, NULL, 0, fail);
    while (code > 0)
        code = ledger_next(ledger, LEDGER_SHRINK, fail);
    return code;
}

int ledger_do_chores(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_mind_syncs(ledger, fail);
    ledger_release(ledger);
    if (code)
        return code;
    if (ledger->wal_pages > WAL_IDLE_PAGES && !ledger->is_held) /* before the log grows further */
        return ledger_checkpoint(ledger, fail);
    if (ledger->sweep_due)
        return sweep_alone(ledger, fail);
    if (ledger->is_held)
        return 0;
    if (ledger->shrink_due)
        return shrink(ledger, fail);
    return ledger->cut_due ? cut(ledger, fail) : 0;
}
