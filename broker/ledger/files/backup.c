#include "broker/ledger/files/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "broker/ledger/files/own_file.h"
#include "common/base/cleanup.h"

enum {
    STEPS_PER_LOOK = 32, /* of SQLite's machine (a row is a few), between two looks at `cancelled` */
    BUSY_MS = 30000      /* a reader that begins while a commit is written may have to wait for it */
};

struct backup {
    pthread_t thread;
    sqlite3 *db;
    int ended_fd;
    atomic_bool cancelled;
    char *dir, *part, *path;
    uint64_t bytes;
    int code;
    struct fail fail;
};

/* ---- what is left of one ------------------------------------------------------------------ */

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

void backups_clean(const char *data_dir)
{
    AUTO_FREE char *path = NULL;
    DIR *dir = asprintf(&path, "%s/backups", data_dir) < 0 ? NULL : opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (ends_with(entry->d_name, ".db.part") || ends_with(entry->d_name, ".db.part-journal"))
            unlinkat(dirfd(dir), entry->d_name, 0);
        else if (ends_with(entry->d_name, ".db")) /* an earlier version left them to be read by others */
            fchmodat(dirfd(dir), entry->d_name, 0600, 0);
    closedir(dir);
}

static void destroy(struct backup *backup)
{
    sqlite3_close(backup->db);
    if (backup->ended_fd >= 0)
        close(backup->ended_fd);
    free(backup->dir);
    free(backup->part);
    free(backup->path);
    free(backup);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int is_cancelled(void *context) { return atomic_load(&((struct backup *)context)->cancelled); }

static int copy_to_part(struct backup *backup)
{
    unlink(backup->part);
    int made = own_file_make(backup->part, &backup->fail);
    if (made)
        return made;
    char *sql = sqlite3_mprintf("PRAGMA auto_vacuum = INCREMENTAL; VACUUM INTO %Q", backup->part);
    int code = sql ? sqlite3_exec(backup->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (code == SQLITE_OK)
        return 0;
    return fail_set(&backup->fail, (code & 0xff) == SQLITE_FULL ? -ENOSPC : -EIO, "cannot copy the ledger to %s: %s",
                    backup->part, sqlite3_errmsg(backup->db));
}

static int sync_path(struct backup *backup, const char *path, int flags)
{
    struct stat found;
    AUTO_CLOSE int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0 || fstat(fd, &found) < 0)
        return fail_set(&backup->fail, -errno, "cannot sync %s: %s", path, strerror(errno));
    if (S_ISREG(found.st_mode))
        backup->bytes = (uint64_t)found.st_size;
    return 0;
}

static int rename_part(struct backup *backup)
{
    if (renameat2(AT_FDCWD, backup->part, AT_FDCWD, backup->path, RENAME_NOREPLACE) == 0)
        return 0;
    bool is_unknown = errno == EINVAL || errno == ENOSYS; /* to this file system */
    if (is_unknown && access(backup->path, F_OK) < 0 && rename(backup->part, backup->path) == 0)
        return 0;
    return fail_set(&backup->fail, -errno, "cannot rename %s: %s", backup->part, strerror(errno));
}

static void remove_part(struct backup *backup)
{
    char journal[PATH_MAX];
    unlink(backup->part);
    if (snprintf(journal, sizeof(journal), "%s-journal", backup->part) < (int)sizeof(journal))
        unlink(journal);
}

static void *run(void *context)
{
    struct backup *backup = context;
    int code = copy_to_part(backup);
    if (code == 0)
        code = sync_path(backup, backup->part, O_RDWR);
    if (code == 0)
        code = rename_part(backup);
    if (code == 0)
        code = sync_path(backup, backup->dir, O_RDONLY | O_DIRECTORY);
    else
        remove_part(backup);
    backup->code = code;
    eventfd_write(backup->ended_fd, 1);
    return NULL;
}

/* ---- starting and ending ---------------------------------------------------------------------- */

static int name_files(struct backup *backup, const char *data_dir, struct slice name, struct fail *fail)
{
    if (asprintf(&backup->dir, "%s/backups", data_dir) < 0 ||
        asprintf(&backup->path, "%s/%.*s.db", backup->dir, SLICE_ARG(name)) < 0 ||
        asprintf(&backup->part, "%s.part", backup->path) < 0)
        return fail_set(fail, -ENOMEM, "out of memory");
    if (mkdir(backup->dir, 0750) < 0 && errno != EEXIST)
        return fail_set(fail, -errno, "cannot make the directory %s: %s", backup->dir, strerror(errno));
    if (access(backup->path, F_OK) == 0)
        return fail_set(fail, -EEXIST, "a backup %.*s exists already: choose another name", SLICE_ARG(name));
    return 0;
}

/* The copy is no larger than the ledger with its log. */
static int see_that_it_fits(struct backup *backup, const char *ledger, uint64_t reserve_bytes, struct fail *fail)
{
    AUTO_FREE char *wal = NULL;
    struct stat found;
    struct statvfs disk;
    if (asprintf(&wal, "%s-wal", ledger) < 0)
        return fail_set(fail, -ENOMEM, "out of memory");
    if (stat(ledger, &found) < 0 || statvfs(backup->dir, &disk) < 0)
        return fail_set(fail, -errno, "cannot look at %s: %s", ledger, strerror(errno));
    uint64_t needed = (uint64_t)found.st_size + reserve_bytes;
    if (stat(wal, &found) == 0)
        needed += (uint64_t)found.st_size;
    uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (needed <= free_bytes)
        return 0;
    return fail_set(fail, -ENOSPC,
                    "the copy may need %llu MiB and %llu MiB are free: make space, or "
                    "make %s a link to another disk",
                    (unsigned long long)(needed >> 20), (unsigned long long)(free_bytes >> 20), backup->dir);
}

static int open_ledger(struct backup *backup, const char *path, struct fail *fail)
{
    int code = sqlite3_open_v2(path, &backup->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return fail_set(fail, -EIO, "cannot open %s: %s", path, sqlite3_errstr(code));
    sqlite3_busy_timeout(backup->db, BUSY_MS);
    sqlite3_progress_handler(backup->db, STEPS_PER_LOOK, is_cancelled, backup);
    return 0;
}

int backup_start(struct backup **ret, const char *data_dir, struct slice name, uint64_t reserve_bytes,
                 struct fail *fail)
{
    AUTO_FREE char *ledger = NULL;
    struct backup *backup = calloc(1, sizeof(*backup));
    if (!backup)
        return fail_set(fail, -ENOMEM, "out of memory");
    backup->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = backup->ended_fd < 0 ? fail_set(fail, -errno, "eventfd: %s", strerror(errno)) : 0;
    if (code == 0 && asprintf(&ledger, "%s/ledger.db", data_dir) < 0)
        code = fail_set(fail, -ENOMEM, "out of memory");
    if (code == 0)
        code = name_files(backup, data_dir, name, fail);
    if (code == 0)
        code = see_that_it_fits(backup, ledger, reserve_bytes, fail);
    if (code == 0)
        code = open_ledger(backup, ledger, fail);
    if (code == 0 && (code = -pthread_create(&backup->thread, NULL, run, backup)))
        fail_set(fail, code, "cannot start a thread: %s", strerror(-code));
    if (code) {
        destroy(backup);
        return code;
    }
    *ret = backup;
    return 0;
}

int backup_fd(const struct backup *backup) { return backup->ended_fd; }

int backup_finish(struct backup **finishing, uint64_t *ret_bytes, struct fail *fail)
{
    struct backup *backup = take_ptr(finishing);
    pthread_join(backup->thread, NULL);
    int code = backup->code;
    if (code)
        fail_set(fail, code, "%s", backup->fail.text);
    else
        *ret_bytes = backup->bytes;
    destroy(backup);
    return code;
}

void backup_cancel(struct backup **cancelling)
{
    uint64_t bytes;
    if (!*cancelling)
        return;
    atomic_store(&(*cancelling)->cancelled, true);
    backup_finish(cancelling, &bytes, NULL);
}
