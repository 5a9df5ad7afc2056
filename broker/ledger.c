#include "broker/ledger_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "broker/lock.h"
#include "common/cleanup.h"

enum {
    SWEEP_PER_COMMIT = 64,
    SWEEP_PER_CHORE = 256,
    WAL_IDLE_PAGES = 1000,  /* 8 MiB: brought home when there is nothing else to do */
    WAL_BUSY_PAGES = 32768  /* 256 MiB: brought home whatever there is to do */
};

int ledger_open(struct ledger **ret, const char *dir, struct fail *fail)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return fail_set(fail, -ENOMEM, "out of memory");
    ledger->lock_fd = -1;
    int code = lock_take(dir, &ledger->lock_fd, fail);
    if (code == 0 && (asprintf(&ledger->path, "%s/ledger.db", dir) < 0 ||
                      !ledger_cache_init(ledger)))
        code = fail_set(fail, -ENOMEM, "out of memory");
    if (code == 0)
        code = ledger_sql_open(ledger, fail);
    if (code == 0)
        code = ledger_ask(ledger, LEDGER_LAST_GROUP, NULL, 0, fail);
    if (code < 0) {
        ledger_close(&ledger);
        return code;
    }
    ledger->next_group = ledger_number(ledger, LEDGER_LAST_GROUP, 0) + 1;
    ledger_reset(ledger, LEDGER_LAST_GROUP);
    ledger->sweep_due = true;
    *ret = ledger;
    return 0;
}

void ledger_close(struct ledger **closing)
{
    struct ledger *ledger = take_ptr(closing);
    if (!ledger)
        return;
    ledger_sql_close(ledger);
    if (ledger->cache)
        ledger_cache_finish(ledger);
    if (ledger->lock_fd >= 0)
        close(ledger->lock_fd);
    free(ledger->path);
    free(ledger);
}

int ledger_next_epoch(struct ledger *ledger, uint64_t *ret, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_GET_EPOCH, NULL, 0, fail);
    if (code < 0)
        return code;
    uint64_t epoch = (uint64_t)ledger_number(ledger, LEDGER_GET_EPOCH, 0) + 1;
    ledger_reset(ledger, LEDGER_GET_EPOCH);
    code = ledger_do(ledger, LEDGER_SET_EPOCH, fail, NUMBER(epoch));
    if (code == 0)
        *ret = epoch;
    return code;
}

/* ---- transactions ------------------------------------------------------------------ */

static int run(struct ledger *ledger, enum ledger_statement statement, struct fail *fail)
{
    int code = ledger_ask(ledger, statement, NULL, 0, fail);
    return code < 0 ? code : 0;
}

int ledger_begin(struct ledger *ledger, struct fail *fail)
{
    ledger_release(ledger);
    return run(ledger, LEDGER_BEGIN, fail);
}

static int checkpoint(struct ledger *ledger, struct fail *fail)
{
    int code = sqlite3_wal_checkpoint_v2(ledger->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    ledger->wal_pages = 0;
    if (code == SQLITE_OK || code == SQLITE_BUSY) /* busy: somebody reads; a later one does it */
        return 0;
    return ledger_broke(ledger, code, fail);
}

int ledger_commit(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_sweep(ledger, SWEEP_PER_COMMIT, fail);
    if (code == 0)
        code = run(ledger, LEDGER_COMMIT, fail);
    if (code == 0 && ledger->wal_pages > WAL_BUSY_PAGES)
        code = checkpoint(ledger, fail);
    return code;
}

int ledger_read_begin(struct ledger *ledger, struct fail *fail)
{
    return run(ledger, LEDGER_READ, fail);
}

int ledger_read_end(struct ledger *ledger, struct fail *fail)
{
    ledger_release(ledger);
    return run(ledger, LEDGER_COMMIT, fail);
}

/* ---- chores ------------------------------------------------------------------------ */

bool ledger_has_chores(const struct ledger *ledger)
{
    return ledger->sweep_due || ledger->wal_pages > WAL_IDLE_PAGES;
}

static int sweep_alone(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    if (code == 0)
        code = ledger_sweep(ledger, SWEEP_PER_CHORE, fail);
    return code ? code : run(ledger, LEDGER_COMMIT, fail);
}

int ledger_do_chores(struct ledger *ledger, struct fail *fail)
{
    ledger_release(ledger);
    if (ledger->sweep_due)
        return sweep_alone(ledger, fail);
    return ledger->wal_pages > WAL_IDLE_PAGES ? checkpoint(ledger, fail) : 0;
}
