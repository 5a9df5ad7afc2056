#include "broker/ledger/inner.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { SWEEP_PER_COMMIT = 64 };

/* ---- opening ----------------------------------------------------------------------- */

static int open_memory(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_sql_open(ledger, ":memory:", fail);
    return code ? code : ledger_schema_make(ledger, fail);
}

static int open_file(struct ledger *ledger, const struct ledger_options *options, struct fail *fail)
{
    int code = ledger_file_prepare(ledger, options->dir, fail);
    if (code == 0)
        code = ledger_sql_open(ledger, ledger->path, fail);
    if (code == 0)
        code = ledger_file_check(ledger, options->check_all, fail);
    return code ? code : ledger_schema_upgrade(ledger, fail);
}

static int open_all(struct ledger *ledger, const struct ledger_options *options, struct fail *fail)
{
    int code = lock_take(options->dir, &ledger->lock, fail);
    if (code)
        return code;
    if (asprintf(&ledger->path, "%s/ledger.db", options->dir) < 0 ||
        asprintf(&ledger->wal_path, "%s-wal", ledger->path) < 0 || !ledger_cache_init(ledger))
        return fail_set(fail, -ENOMEM, "out of memory");
    code = options->durability == LEDGER_NONE ? open_memory(ledger, fail) : open_file(ledger, options, fail);
    if (code == 0)
        code = ledger_sql_start(ledger, fail);
    if (code == 0)
        code = ledger_ask(ledger, LEDGER_LAST_GROUP, NULL, 0, fail);
    return code < 0 ? code : ledger_start_syncing(ledger, fail);
}

int ledger_open(struct ledger **ret, const struct ledger_options *options, struct fail *fail)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return fail_set(fail, -ENOMEM, "out of memory");
    ledger->lock = lock_none();
    ledger->wal_fd = -1;
    ledger->durability = options->durability;
    ledger->forgotten_max = options->forgotten_max ? options->forgotten_max : FORGOTTEN_MAX;
    int code = open_all(ledger, options, fail);
    if (code) {
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
    ledger_sync(ledger, NULL); /* what fails now must not be written by closing either */
    syncer_stop(&ledger->syncer);
    ledger_sql_close(ledger);
    if (ledger->wal_fd >= 0)
        close(ledger->wal_fd);
    if (ledger->cache)
        ledger_cache_finish(ledger);
    lock_let_go(&ledger->lock);
    free(ledger->path);
    free(ledger->wal_path);
    free(ledger);
}

static int get_highest(struct ledger *ledger, struct slice name, uint64_t *ret, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_GET_HIGHEST, &TEXT(name), 1, fail);
    if (code < 0)
        return code;
    *ret = (uint64_t)ledger_number(ledger, LEDGER_GET_HIGHEST, 0);
    ledger_reset(ledger, LEDGER_GET_HIGHEST);
    return 0;
}

int ledger_next_epoch(struct ledger *ledger, uint64_t *ret, struct fail *fail)
{
    uint64_t last = 0;
    int code = get_highest(ledger, META_EPOCH, &last, fail);
    if (code == 0)
        code = ledger_do(ledger, LEDGER_RAISE, fail, TEXT(META_EPOCH), NUMBER(last + 1));
    if (code)
        return code;
    code = ledger_sync(ledger, fail);
    if (code)
        return code;
    ledger_mark(ledger, true, NULL); /* unsaid, a -wal that goes away is not missed */
    *ret = last + 1;
    return 0;
}

int ledger_get_versions(struct ledger *ledger, uint64_t *ret, struct fail *fail)
{
    return get_highest(ledger, META_VERSIONS, ret, fail);
}

/* ---- transactions ------------------------------------------------------------------ */

int ledger_commit(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_sweep(ledger, SWEEP_PER_COMMIT, fail);
    if (code == 0)
        code = ledger_end(ledger, fail);
    return code ? code : ledger_mind_log(ledger, fail);
}

int ledger_read_begin(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_READ, NULL, 0, fail);
    return code < 0 ? code : 0;
}

int ledger_read_end(struct ledger *ledger, struct fail *fail) { return ledger_end(ledger, fail); }
