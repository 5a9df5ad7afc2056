#include "broker/ledger/files/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

/* The file: the holder's pid, a note and a mark, a line each, always of the same length, so that to
   write over it needs no space. */
enum {
    LINE_SIZE = LOCK_NOTE_SIZE,
    NOTE_AT = LINE_SIZE,
    MARK_AT = NOTE_AT + LOCK_NOTE_SIZE,
    FILE_SIZE = MARK_AT + LOCK_MARK_SIZE
};

/*
 * A byte of the page on which SQLite has its locks and never data, behind those it uses. The lock
 * is of that byte only: where flock is a lock of all bytes (NFS), it would keep SQLite out.
 */
enum { HELD_BYTE = 0x40001000 };

static const char file_name[] = "lock";

/* The line of `size` bytes at `at`, without the blanks at its end. */
static void read_line(int fd, off_t at, char *ret, size_t size)
{
    ssize_t len = pread(fd, ret, size - 1, at);
    ret[len > 0 ? len : 0] = '\0';
    size_t end = strcspn(ret, "\n");
    while (end > 0 && ret[end - 1] == ' ')
        end--;
    ret[end] = '\0';
}

static bool write_lines(const struct lock *lock, int fd)
{
    char text[FILE_SIZE + 1];
    snprintf(text, sizeof(text), "%-15d\n%-15.15s\n%-31.31s\n", getpid(), lock->note, lock->mark);
    return pwrite(fd, text, FILE_SIZE, 0) == FILE_SIZE;
}

static int refuse_second(const char *dir, int dir_fd, struct fail *fail)
{
    char pid[LINE_SIZE] = "";
    AUTO_CLOSE int fd = openat(dir_fd, file_name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        read_line(fd, 0, pid, sizeof(pid));
    return fail_set(fail, -EBUSY, "another broker (pid %s) uses %s: end it, or choose another directory",
                    pid[0] ? pid : "unknown", dir);
}

/* Not every file system can: then the file's lock is all there is. */
static bool is_unlockable(int code) { return code == EBADF || code == EINVAL || code == ENOTSUP || code == ENOLCK; }

static int take_directory(const char *dir, int *ret_fd, struct fail *fail)
{
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_set(fail, -errno, "cannot open the directory %s: %s: check its owner and mode", dir,
                        strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && !is_unlockable(errno))
        return errno == EWOULDBLOCK ? refuse_second(dir, fd, fail)
                                    : fail_set(fail, -errno, "cannot lock %s: %s", dir, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

static int take_file(const char *dir, int dir_fd, int *ret_fd, struct fail *fail)
{
    AUTO_CLOSE int fd = openat(dir_fd, file_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_set(fail, -errno, "cannot write in the directory %s: %s: check its owner and mode", dir,
                        strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? refuse_second(dir, dir_fd, fail)
                                    : fail_set(fail, -errno, "cannot lock %s/%s: %s", dir, file_name, strerror(errno));
    fchmod(fd, 0600); /* whatever the umask, and whoever made it */
    *ret_fd = take_fd(&fd);
    return 0;
}

int lock_take(const char *dir, struct lock *ret, struct fail *fail)
{
    struct lock lock = lock_none();
    if (mkdir(dir, 0750) < 0 && errno != EEXIST)
        return fail_set(fail, -errno, "cannot make the directory %s: %s", dir, strerror(errno));
    int code = take_directory(dir, &lock.dir_fd, fail);
    if (code == 0)
        code = take_file(dir, lock.dir_fd, &lock.file_fd, fail);
    if (code) {
        lock_let_go(&lock);
        return code;
    }
    read_line(lock.file_fd, NOTE_AT, lock.note, sizeof(lock.note));
    read_line(lock.file_fd, MARK_AT, lock.mark, sizeof(lock.mark));
    write_lines(&lock, lock.file_fd); /* the pid is only for people; on a full disk the lock still holds */
    *ret = lock;
    return 0;
}

int lock_hold(struct lock *lock, const char *path, struct fail *fail)
{
    struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = HELD_BYTE, .l_len = 1};
    AUTO_CLOSE int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES || errno == EPERM || errno == EROFS
                   ? 0
                   : fail_set(fail, -errno, "cannot open %s: %s", path, strerror(errno));
    if (fcntl(fd, F_OFD_SETLK, &held) < 0 && !is_unlockable(errno))
        return errno == EAGAIN || errno == EACCES
                   ? fail_set(fail, -EBUSY,
                              "another broker uses the file %s, by this or another name: end it, "
                              "or start on a copy (sluice backup makes one)",
                              path)
                   : fail_set(fail, -errno, "cannot lock %s: %s", path, strerror(errno));
    lock->held_fd = take_fd(&fd);
    return 0;
}

void lock_let_go(struct lock *lock)
{
    if (lock->held_fd >= 0)
        close(lock->held_fd);
    if (lock->file_fd >= 0)
        close(lock->file_fd);
    if (lock->dir_fd >= 0)
        close(lock->dir_fd);
    *lock = lock_none();
}

int lock_note(struct lock *lock, const char *note, struct fail *fail)
{
    snprintf(lock->note, sizeof(lock->note), "%s", note);
    if (!write_lines(lock, lock->file_fd) || fdatasync(lock->file_fd) < 0)
        return fail_set(fail, -errno, "cannot write the lock's note: %s", strerror(errno));
    return 0;
}

void lock_mark(struct lock *lock, const char *mark)
{
    char line[LOCK_MARK_SIZE + 1];
    snprintf(lock->mark, sizeof(lock->mark), "%s", mark);
    snprintf(line, sizeof(line), "%-31s\n", lock->mark);
    if (pwrite(lock->file_fd, line, LOCK_MARK_SIZE, MARK_AT) < 0)
        lock->mark[0] = '\0'; /* the one before stays, which says less */
}

void lock_look(struct lock *lock)
{
    struct stat found;
    int fd;
    if (fstatat(lock->dir_fd, file_name, &found, 0) == 0 || errno != ENOENT ||
        take_file("", lock->dir_fd, &fd, NULL) != 0)
        return;
    if (write_lines(lock, fd) && fdatasync(fd) == 0) {
        close(lock->file_fd);
        lock->file_fd = fd;
    } else { /* the next look tries again */
        unlinkat(lock->dir_fd, file_name, 0);
        close(fd);
    }
}
