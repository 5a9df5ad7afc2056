/*
 * What can wait until there is nothing else to do: sweeping, bringing the write-ahead log
 * home, and giving free pages back to the disk. Each in slices, so that a commit that comes
 * meanwhile waits for one slice at most.
 */
#include "broker/ledger_inner.h"

enum {
    SWEEP_PER_CHORE = 256,
    WAL_IDLE_PAGES = 1000,  /* 8 MiB: brought home when there is nothing else to do */
    SHRINK_FREE_MIN = 8192  /* 64 MiB of free pages are kept for what comes next */
};

int ledger_checkpoint(struct ledger *ledger, struct fail *fail)
{
    int code = sqlite3_wal_checkpoint_v2(ledger->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    ledger->wal_pages = 0;
    if (code == SQLITE_OK || code == SQLITE_BUSY) /* busy: somebody reads; a later one does it */
        return 0;
    return ledger_broke(ledger, code, fail);
}

bool ledger_has_chores(const struct ledger *ledger)
{
    return ledger->sweep_due || ledger->shrink_due || ledger->wal_pages > WAL_IDLE_PAGES;
}

static int sweep_alone(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    if (code == 0)
        code = ledger_sweep(ledger, SWEEP_PER_CHORE, fail);
    return code ? code : ledger_end(ledger, fail);
}

/* Begun above a quarter of the file, and gone on with down to an eighth. */
static int look_at_free_pages(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_COUNT_PAGES, NULL, 0, fail);
    if (code <= 0)
        return code;
    int64_t free_pages = ledger_number(ledger, LEDGER_COUNT_PAGES, 0);
    int64_t pages = ledger_number(ledger, LEDGER_COUNT_PAGES, 1);
    ledger_reset(ledger, LEDGER_COUNT_PAGES);
    bool is_much = free_pages > pages / (ledger->is_shrinking ? 8 : 4);
    ledger->is_shrinking = is_much && free_pages > SHRINK_FREE_MIN;
    ledger->shrink_due = ledger->is_shrinking;
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
    ledger_release(ledger);
    if (ledger->sweep_due)
        return sweep_alone(ledger, fail);
    if (ledger->wal_pages > WAL_IDLE_PAGES)
        return ledger_checkpoint(ledger, fail);
    return ledger->shrink_due ? shrink(ledger, fail) : 0;
}
