/*
 * From committed to durable. SQLite writes a commit to its log and does not sync it; a thread syncs the log, once
 * somebody asks for it, while the next commits are written, and one sync serves all that came before it. How far it has
 * come is noted beside the lock afterwards (ledger/files/mark.c), so that the next start knows how much of the log it
 * must be able to read.
 */
#include "broker/ledger/inner.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { WAL_SALTS_AT = 16 }; /* in its header: https://sqlite.org/fileformat2.html#the_write_ahead_log */

static int read_salts(int wal_fd, uint32_t ret[2])
{
    uint32_t salts[2];
    if (pread(wal_fd, salts, sizeof(salts), WAL_SALTS_AT) != sizeof(salts))
        return -EIO;
    ret[0] = be32toh(salts[0]);
    ret[1] = be32toh(salts[1]);
    return 0;
}

/* SQLite's hook: a commit has been written, and the log has so many frames now. */
static int on_commit(void *context, sqlite3 *db, const char *name, int pages)
{
    struct ledger *ledger = context;
    (void)db, (void)name;
    ledger->wal_pages = pages;
    if (pages > ledger->wal_longest)
        ledger->wal_longest = pages;
    if (!ledger->syncer)
        return SQLITE_OK;
    struct commit_point *point = &ledger->committed;
    point->number++;
    point->frames = (uint32_t)pages;
    return read_salts(ledger->wal_fd, point->salts) < 0 ? SQLITE_IOERR_READ : SQLITE_OK;
}

int ledger_start_syncing(struct ledger *ledger, struct fail *fail)
{
    sqlite3_wal_hook(ledger->db, on_commit, ledger);
    if (ledger->durability != LEDGER_FULL)
        return 0;
    ledger->wal_fd = open(ledger->wal_path, O_RDONLY | O_CLOEXEC);
    return ledger->wal_fd < 0 ? fail_set(fail, -errno, "cannot open %s: %s", ledger->wal_path, strerror(errno))
                              : syncer_start(&ledger->syncer, ledger->wal_fd, fail);
}

struct commit_point ledger_committed(const struct ledger *ledger) { return ledger->committed; }

void ledger_ask_durable(struct ledger *ledger, const struct commit_point *point)
{
    if (!ledger->syncer || ledger->asked >= point->number)
        return;
    syncer_ask(ledger->syncer, *point);
    ledger->asked = point->number;
}

int ledger_durable(struct ledger *ledger, uint64_t *ret, struct fail *fail)
{
    struct commit_point reached;
    if (!ledger->syncer) {
        *ret = UINT64_MAX;
        return 0;
    }
    int code = syncer_reached(ledger->syncer, &reached);
    if (code)
        return ledger_say_sync(ledger, code, fail);
    if (reached.number > ledger->durable.number) {
        ledger->durable = reached;
        ledger_mark_durable(ledger);
    }
    *ret = reached.number;
    return 0;
}

int ledger_await_durable(struct ledger *ledger, const struct commit_point *point, struct fail *fail)
{
    uint64_t durable;
    ledger_ask_durable(ledger, point);
    if (ledger->syncer)
        syncer_await(ledger->syncer, point->number); /* what it failed with is said again */
    return ledger_durable(ledger, &durable, fail);
}

int ledger_mind_syncs(struct ledger *ledger, struct fail *fail)
{
    const int code = ledger->syncer && !ledger->broken.code ? syncer_code(ledger->syncer) : 0;
    if (code)
        ledger_say_sync(ledger, code, &ledger->broken);
    return ledger_standing(ledger, fail);
}

int ledger_sync(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_mind_syncs(ledger, fail);
    if (code == 0 && ledger_await_durable(ledger, &ledger->committed, fail))
        code = ledger_mind_syncs(ledger, fail);
    return code;
}

int ledger_sync_fd(const struct ledger *ledger) { return ledger->syncer ? syncer_fd(ledger->syncer) : -1; }
