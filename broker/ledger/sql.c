#include "broker/ledger/inner.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/base/cleanup.h"

static const char *const statement_texts[] = {
#define TABLE(sql)
#define UPGRADE(version, sql)
#define STATEMENT(name, sql) sql,
#include "broker/ledger/ledger.def"
#undef TABLE
#undef UPGRADE
#undef STATEMENT
};

/* ---- errors ---------------------------------------------------------------------- */

static const struct {
    int code, error;
    const char *words;
} refusals[] = {
    {SQLITE_FULL, -ENOSPC,
     "the disk is full: free some space, then start the broker again; "
     "nothing that was acknowledged is lost"},
    {SQLITE_IOERR, -EIO,
     "the disk refused a read, a write or a sync: see the kernel's log; "
     "nothing that was acknowledged is lost"},
    {SQLITE_CORRUPT, -EBADMSG,
     "it is damaged, and was left as it is: move it and its -wal aside, "
     "and put the newest of backups/ in its place, or what `sqlite3 FILE "
     ".recover` or `.dump` saves (docs/operations.md, A damaged ledger)"},
    {SQLITE_ERROR, -EBADMSG,
     "its tables are not a ledger's: it is damaged, or somebody has changed "
     "it; put the newest of backups/ in its place (docs/operations.md)"},
    {SQLITE_NOTADB, -EBADMSG,
     "this is not a ledger, and was left as it is: move it aside, put the "
     "newest of backups/ in its place, or name another --data"},
    {SQLITE_BUSY, -EBUSY, "another program holds it locked: end that program (an open sqlite3?)"},
    {SQLITE_LOCKED, -EBUSY, "another program holds it locked: end that program"},
    {SQLITE_READONLY, -EACCES, "it may not be written: check its owner and mode, and the mount"},
    {SQLITE_CANTOPEN, -EACCES, "it cannot be opened: check its owner and mode, and the directory's"},
    {SQLITE_NOMEM, -ENOMEM, "out of memory"},
};

/* Not every way to run out of space is SQLITE_FULL: a quota is not, nor the -shm's growing. */
static int sharpen(struct ledger *ledger, int code)
{
    int error = ledger->db && (code & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(ledger->db) : 0;
    return error == ENOSPC || error == EDQUOT ? SQLITE_FULL : code;
}

static int say(const struct ledger *ledger, int code, const char *detail, struct fail *fail)
{
    int error = -EIO;
    const char *words = "the database refused";
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        if (refusals[i].code == (code & 0xff)) {
            error = refusals[i].error;
            words = refusals[i].words;
        }
    return fail_set(fail, error, "ledger %s: %s (%s)", ledger->path, words, detail);
}

static int remember(struct ledger *ledger, int code, const char *detail, struct fail *fail)
{
    if (ledger->broken.code == 0)
        say(ledger, code, detail, &ledger->broken);
    return ledger_standing(ledger, fail);
}

int ledger_broke(struct ledger *ledger, int code, struct fail *fail)
{
    return remember(ledger, sharpen(ledger, code), ledger->db ? sqlite3_errmsg(ledger->db) : sqlite3_errstr(code),
                    fail);
}

int ledger_damaged(struct ledger *ledger, const char *detail, struct fail *fail)
{
    return remember(ledger, SQLITE_CORRUPT, detail, fail);
}

int ledger_say_sync(const struct ledger *ledger, int code, struct fail *fail)
{
    const bool is_full = code == -ENOSPC || code == -EDQUOT;
    return say(ledger, is_full ? SQLITE_FULL : SQLITE_IOERR_FSYNC, strerror(-code), fail);
}

int ledger_standing(const struct ledger *ledger, struct fail *fail)
{
    return ledger->broken.code ? fail_set(fail, ledger->broken.code, "%s", ledger->broken.text) : 0;
}

/* ---- opening ------------------------------------------------------------------------ */

int ledger_sql_run(struct ledger *ledger, const char *sql, struct fail *fail)
{
    int code = sqlite3_exec(ledger->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : ledger_broke(ledger, code, fail);
}

static int prepare_all(struct ledger *ledger, struct fail *fail)
{
    for (int i = 0; i < LEDGER_STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(ledger->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &ledger->statements[i], NULL);
        if (code != SQLITE_OK)
            return ledger_broke(ledger, code, fail);
    }
    return 0;
}

int ledger_sql_open(struct ledger *ledger, const char *path, struct fail *fail)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* heard before the first use only; saves a lock an allocation */
    int code = sqlite3_open_v2(path, &ledger->db, flags, NULL);
    if (code != SQLITE_OK)
        return ledger_broke(ledger, code, fail);
    sqlite3_extended_result_codes(ledger->db, 1);
    sqlite3_busy_timeout(ledger->db, LEDGER_BUSY_MS);
    return 0;
}

int ledger_sql_start(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_sql_run(
        ledger, ledger->durability == LEDGER_FULL ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = OFF", fail);
    if (code == 0)
        code = ledger_sql_run(ledger,
                              "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                              "PRAGMA journal_size_limit = 268435456;"
                              "PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;"
                              "PRAGMA secure_delete = FAST", /* what is swept is not written again */
                              fail);
    if (code == 0)
        code = prepare_all(ledger, fail);
    return code;
}

/* What a failed sync left in doubt must not be written by closing. */
void ledger_sql_close(struct ledger *ledger)
{
    for (int i = 0; i < LEDGER_STATEMENT_COUNT; i++)
        sqlite3_finalize(take_ptr(&ledger->statements[i]));
    if (ledger->db && (ledger->broken.code || ledger_mark(ledger, false, NULL) < 0))
        sqlite3_db_config(ledger->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(take_ptr(&ledger->db));
}

/* ---- asking -------------------------------------------------------------------------- */

static int bind_value(sqlite3_stmt *statement, int at, const struct value *value)
{
    const void *data = value->type >= VALUE_TEXT && value->bytes.data ? value->bytes.data : (const uint8_t *)"";
    switch (value->type) {
    case VALUE_NONE: return sqlite3_bind_null(statement, at);
    case VALUE_NUMBER: return sqlite3_bind_int64(statement, at, value->number);
    case VALUE_REAL: return sqlite3_bind_double(statement, at, value->real);
    case VALUE_TEXT: return sqlite3_bind_text(statement, at, data, (int)value->bytes.len, SQLITE_STATIC);
    case VALUE_BLOB: return sqlite3_bind_blob(statement, at, data, (int)value->bytes.len, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

int ledger_next(struct ledger *ledger, enum ledger_statement statement, struct fail *fail)
{
    int code = sqlite3_step(ledger->statements[statement]);
    if (code == SQLITE_ROW)
        return 1;
    if (code == SQLITE_DONE) {
        sqlite3_reset(ledger->statements[statement]);
        return 0;
    }
    code = ledger_broke(ledger, code, fail);
    sqlite3_reset(ledger->statements[statement]);
    return code;
}

int ledger_ask(struct ledger *ledger, enum ledger_statement statement, const struct value *values, size_t count,
               struct fail *fail)
{
    int broken = ledger_standing(ledger, fail);
    if (broken)
        return broken;
    sqlite3_stmt *prepared = ledger->statements[statement];
    assert((int)count == sqlite3_bind_parameter_count(prepared));
    sqlite3_reset(prepared);
    for (size_t i = 0; i < count; i++) {
        int code = bind_value(prepared, (int)i + 1, &values[i]);
        if (code != SQLITE_OK)
            return ledger_broke(ledger, code, fail);
    }
    return ledger_next(ledger, statement, fail);
}

int ledger_do_values(struct ledger *ledger, enum ledger_statement statement, const struct value *values, size_t count,
                     struct fail *fail)
{
    int code = ledger_ask(ledger, statement, values, count, fail);
    assert(code <= 0);
    return code;
}

int ledger_add_values(struct ledger *ledger, enum ledger_statement add, enum ledger_statement replace,
                      const struct value *values, size_t count, struct fail *fail)
{
    int code = ledger_do_values(ledger, add, values, count, fail);
    return code == 0 && sqlite3_changes(ledger->db) == 0 ? ledger_do_values(ledger, replace, values, count, fail)
                                                         : code;
}

void ledger_reset(struct ledger *ledger, enum ledger_statement statement)
{
    sqlite3_reset(ledger->statements[statement]);
}

void ledger_release(struct ledger *ledger)
{
    static const enum ledger_statement loaders[] = {LEDGER_FIND_GROUP,      LEDGER_FIND_INIT, LEDGER_LOAD_RUN,
                                                    LEDGER_LOAD_RUN_RECORD, LEDGER_LOAD_END,  LEDGER_LOAD_RECORD,
                                                    LEDGER_LOAD_METADATA};
    for (size_t i = 0; i < sizeof(loaders) / sizeof(*loaders); i++)
        if (sqlite3_stmt_busy(ledger->statements[loaders[i]]))
            ledger_reset(ledger, loaders[i]);
    if (ledger->published)
        ledger_let_run_go(ledger, ledger->published);
}

int64_t ledger_number(struct ledger *ledger, enum ledger_statement statement, int column)
{
    return sqlite3_column_int64(ledger->statements[statement], column);
}

double ledger_real(struct ledger *ledger, enum ledger_statement statement, int column)
{
    return sqlite3_column_double(ledger->statements[statement], column);
}

bool ledger_is_null(struct ledger *ledger, enum ledger_statement statement, int column)
{
    return sqlite3_column_type(ledger->statements[statement], column) == SQLITE_NULL;
}

struct slice ledger_slice(struct ledger *ledger, enum ledger_statement statement, int column)
{
    sqlite3_stmt *prepared = ledger->statements[statement];
    const void *data = sqlite3_column_blob(prepared, column);
    return slice_of(data, data ? (size_t)sqlite3_column_bytes(prepared, column) : 0);
}
