/*
 * The file itself: made aside and renamed, so that a ledger.db that is there is whole; and
 * looked at before anything is written to it, so that what is damaged stays as it is.
 */
#include "broker/ledger/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "broker/ledger/files/own_file.h"
#include "common/base/cleanup.h"

enum { CHECKED_BYTES_MAX = 256 << 20 }; /* larger files are checked whole only when asked to */

/* ---- a new one ------------------------------------------------------------------------ */

static int sync_directory(const char *path, struct fail *fail)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return fail_set(fail, -errno, "cannot sync the directory %s: %s", path, strerror(errno));
    return 0;
}

static int make_file(struct ledger *ledger, const char *dir, struct fail *fail)
{
    AUTO_FREE char *aside = NULL;
    if (asprintf(&aside, "%s.new", ledger->path) < 0)
        return fail_set(fail, -ENOMEM, "out of memory");
    unlink(aside); /* of a start that was cut short */
    int code = own_file_make(aside, fail);
    if (code == -ENOSPC || code == -EDQUOT)
        return ledger_broke(ledger, SQLITE_FULL, fail);
    if (code == 0)
        code = ledger_sql_open(ledger, aside, fail);
    if (code == 0)
        code = ledger_schema_make(ledger, fail);
    ledger_sql_close(ledger);
    if (code == 0 && rename(aside, ledger->path) < 0)
        code = fail_set(fail, -errno, "cannot rename %s: %s", aside, strerror(errno));
    if (code)
        unlink(aside);
    return code ? code : sync_directory(dir, fail);
}

/* ---- what is there ----------------------------------------------------------------------- */

/* Its length, or -1 where there is none. */
static int64_t length_of(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 ? (int64_t)found.st_size : -1;
}

/* `look` at the file, its -wal and its -shm. */
static int each_file(struct ledger *ledger, int (*look)(const char *path, struct fail *fail), struct fail *fail)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof(ends) / sizeof(*ends); i++) {
        AUTO_FREE char *path = NULL;
        if (asprintf(&path, "%s%s", ledger->path, ends[i]) < 0)
            return fail_set(fail, -ENOMEM, "out of memory");
        code = look(path, fail);
    }
    return code;
}

/* Is what is there all that the broker before this one left? */
static int check_left(struct ledger *ledger, int64_t bytes, int64_t wal_bytes, struct fail *fail)
{
    enum ledger_left left = ledger_state_left(ledger);
    if (bytes == 0)
        return ledger_damaged(ledger, "it is empty", fail);
    if (left != LEDGER_WAS_CLOSED && wal_bytes < 0)
        return ledger_damaged(ledger,
                              "its -wal is gone, and with it what was acknowledged last; "
                              "where that is as it should be, remove the file lock beside it",
                              fail);
    if (wal_bytes > 0)
        ledger->wal_longest = (int)(wal_bytes / LEDGER_PAGE_BYTES);
    int code = each_file(ledger, own_file_close, fail); /* an earlier version left them as the umask had it */
    if (code || wal_bytes < 0 || left == LEDGER_WAS_OPEN_PROCESS)
        return code;
    char detail[160];
    const struct commit_point durable = ledger_marked_durable(ledger);
    code = ledger_wal_check(ledger->wal_path, &durable, detail, sizeof(detail), fail);
    return code == -EBADMSG ? ledger_damaged(ledger, detail, fail) : code;
}

int ledger_file_prepare(struct ledger *ledger, const char *dir, struct fail *fail)
{
    int code = each_file(ledger, own_file_check_name, fail);
    if (code)
        return code;
    int64_t bytes = length_of(ledger->path), wal_bytes = length_of(ledger->wal_path);
    if (bytes < 0 && wal_bytes > 0)
        return ledger_damaged(ledger, "it is gone, and its -wal is there", fail);
    if (bytes < 0)
        code = make_file(ledger, dir, fail);
    if (code == 0)
        code = lock_hold(&ledger->lock, ledger->path, fail);
    return code || bytes < 0 ? code : check_left(ledger, bytes, wal_bytes, fail);
}

static int check_pages(struct ledger *ledger, struct fail *fail)
{
    sqlite3_stmt *check = NULL;
    int code = sqlite3_prepare_v2(ledger->db, "PRAGMA quick_check(1)", -1, &check, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(check);
    char detail[160] = "";
    if (code == SQLITE_ROW) {
        const char *said = (const char *)sqlite3_column_text(check, 0);
        const char *second = said && said[0] == '*' ? strchr(said, '\n') : NULL; /* after a title */
        snprintf(detail, sizeof(detail), "%s", second ? second + 1 : said ? said : "");
    }
    sqlite3_finalize(check);
    if (code != SQLITE_ROW)
        return ledger_broke(ledger, code, fail);
    detail[strcspn(detail, "\n")] = '\0';
    return strcmp(detail, "ok") == 0 ? 0 : ledger_damaged(ledger, detail, fail);
}

int ledger_file_check(struct ledger *ledger, bool all, struct fail *fail)
{
    if (stat(ledger->path, &ledger->found) < 0)
        return fail_set(fail, -errno, "cannot look at %s: %s", ledger->path, strerror(errno));
    int code = ledger_sql_run(ledger, "PRAGMA schema_version", fail); /* reads the header */
    if (code)
        return code;
    if (sqlite3_db_readonly(ledger->db, "main") == 1)
        return access(ledger->path, W_OK) == 0
                   ? ledger_damaged(ledger, "its header is of a format that may only be read", fail)
                   : ledger_broke(ledger, SQLITE_READONLY, fail);
    if (all || length_of(ledger->path) <= CHECKED_BYTES_MAX)
        return check_pages(ledger, fail);
    return 0;
}

/* ---- while it is open --------------------------------------------------------------------------- */

/* The open file has no name any more: what it holds is copied to one that has. */
static int save_removed(struct ledger *ledger, struct fail *fail)
{
    char *path = sqlite3_mprintf("%s.saved", ledger->path);
    char *sql = path ? sqlite3_mprintf("VACUUM INTO %Q", path) : NULL;
    if (path)
        own_file_make(path, NULL);
    bool is_saved = sql && sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_free(sql);
    sqlite3_free(path);
    fail_set(&ledger->broken, -ESTALE,
             "ledger %s was removed, or another was put in its place, while "
             "the broker ran: what it held %s %s.saved; nothing more is taken (docs/operations.md)",
             ledger->path, is_saved ? "is in" : "could not be copied to", ledger->path);
    return fail_set(fail, -ESTALE, "%s", ledger->broken.text);
}

int ledger_look(struct ledger *ledger, struct fail *fail)
{
    struct stat now;
    if (ledger->durability == LEDGER_NONE || ledger->broken.code)
        return 0;
    lock_look(&ledger->lock);
    ledger->is_held = false;
    if (stat(ledger->path, &now) < 0 ? errno == ENOENT
                                     : now.st_dev != ledger->found.st_dev || now.st_ino != ledger->found.st_ino)
        return save_removed(ledger, fail);
    if (access(ledger->wal_path, F_OK) == 0 || errno != ENOENT)
        return 0;
    int code = ledger_checkpoint(ledger, fail); /* and closing does what a reader kept from it */
    return code ? code
                : fail_set(fail, -ESTALE,
                           "%s was removed while the broker ran: what it held "
                           "is in ledger.db now; start the broker again",
                           ledger->wal_path);
}
