/* The tables: made in a new file, and brought up to date in an earlier version's. */
#include "broker/ledger/inner.h"

#include <errno.h>
#include <stdio.h>

static const char *const tables[] = {
#define TABLE(sql) sql,
#define UPGRADE(version, sql)
#define STATEMENT(name, sql)
#include "broker/ledger/ledger.def"
#undef TABLE
#undef UPGRADE
#undef STATEMENT
};

/* Of a column with a URL, for UPGRADE: what is behind "://"; of that the part before a path; of that what ends with
   the last '@', which is empty where there is none. */
#define BEHIND_SCHEME(url) "substr(" url ", instr(" url ", '://') + 3)"
#define AUTHORITY(url) "substr(" BEHIND_SCHEME(url) ", 1, instr(" BEHIND_SCHEME(url) " || '/', '/') - 1)"
#define USER_AND_AT(url) "rtrim(" AUTHORITY(url) ", replace(" AUTHORITY(url) ", '@', ''))"
#define HAS_USER(url) USER_AND_AT(url) " <> ''"
#define USER_OF(url) "substr(" USER_AND_AT(url) ", 1, length(" USER_AND_AT(url) ") - 1)"
#define WITHOUT_USER(url)                                                                                              \
    "substr(" url ", 1, instr(" url ", '://') + 2) ||"                                                                 \
    " substr(" BEHIND_SCHEME(url) ", length(" USER_AND_AT(url) ") + 1)"

static const struct {
    int version;
    const char *sql;
} upgrades[] = {
#define TABLE(sql)
#define UPGRADE(version, sql) {version, sql},
#define STATEMENT(name, sql)
#include "broker/ledger/ledger.def"
#undef TABLE
#undef UPGRADE
#undef STATEMENT
};

enum { APPLICATION_ID = 0x534c5543 /* "SLUC" */ };

static int get_pragma(struct ledger *ledger, const char *sql, int64_t *ret, struct fail *fail)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? 0 : ledger_broke(ledger, code, fail);
}

/* Writes whose file it is and which version, and ends the transaction. */
static int commit_version(struct ledger *ledger, struct fail *fail)
{
    char mark[96];
    snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", APPLICATION_ID,
             LEDGER_VERSION);
    return ledger_sql_run(ledger, mark, fail);
}

int ledger_schema_make(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_sql_run(ledger,
                              "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL;"
                              "BEGIN IMMEDIATE",
                              fail);
    for (size_t i = 0; code == 0 && i < sizeof(tables) / sizeof(*tables); i++)
        code = ledger_sql_run(ledger, tables[i], fail);
    return code ? code : commit_version(ledger, fail);
}

static int upgrade_from(struct ledger *ledger, int64_t version, struct fail *fail)
{
    int code = ledger_sql_run(ledger, "BEGIN IMMEDIATE", fail);
    for (size_t i = 0; code == 0 && i < sizeof(upgrades) / sizeof(*upgrades); i++)
        if (upgrades[i].version > version)
            code = ledger_sql_run(ledger, upgrades[i].sql, fail);
    return code ? code : commit_version(ledger, fail);
}

static int refuse_newer(struct ledger *ledger, int64_t version, struct fail *fail)
{
    fail_set(&ledger->broken, -EPROTO,
             "ledger %s was written by a newer broker (version %lld of "
             "the tables, this one knows %d): start the newer broker, or name another --data",
             ledger->path, (long long)version, LEDGER_VERSION);
    return fail_set(fail, -EPROTO, "%s", ledger->broken.text);
}

int ledger_schema_upgrade(struct ledger *ledger, struct fail *fail)
{
    int64_t version = 0, application = 0, incremental = 0;
    int code = get_pragma(ledger, "PRAGMA user_version", &version, fail);
    if (code == 0)
        code = get_pragma(ledger, "PRAGMA application_id", &application, fail);
    if (code == 0)
        code = get_pragma(ledger, "PRAGMA auto_vacuum", &incremental, fail);
    if (code)
        return code;
    ledger->can_shrink = incremental == 2;
    if (application != APPLICATION_ID || version < 1)
        return ledger_broke(ledger, SQLITE_NOTADB, fail);
    if (version > LEDGER_VERSION)
        return refuse_newer(ledger, version, fail);
    return version < LEDGER_VERSION ? upgrade_from(ledger, version, fail) : 0;
}
