#include "broker/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/cleanup.h"

/* The file: the holder's pid and a note, a line each, always of the same length, so that to
   write over it needs no space. */
enum { LINE_SIZE = LOCK_NOTE_SIZE, FILE_SIZE = 2 * LINE_SIZE };

/* Line 0 or 1, without the blanks at its end. */
static void read_line(int fd, int line, char ret[LINE_SIZE])
{
    ssize_t len = pread(fd, ret, LINE_SIZE - 1, (off_t)line * LINE_SIZE);
    ret[len > 0 ? len : 0] = '\0';
    size_t end = strcspn(ret, "\n");
    while (end > 0 && ret[end - 1] == ' ')
        end--;
    ret[end] = '\0';
}

static bool write_lines(int fd, const char *note)
{
    char text[FILE_SIZE + 1];
    snprintf(text, sizeof(text), "%-15d\n%-15.15s\n", getpid(), note);
    return pwrite(fd, text, FILE_SIZE, 0) == FILE_SIZE;
}

static int refuse_second(const char *dir, int fd, struct fail *fail)
{
    char pid[LINE_SIZE];
    read_line(fd, 0, pid);
    return fail_set(fail, -EBUSY, "another broker (pid %s) uses %s: end it, or choose another directory",
                    pid[0] ? pid : "unknown", dir);
}

int lock_take(const char *dir, int *ret_fd, struct fail *fail)
{
    if (mkdir(dir, 0750) < 0 && errno != EEXIST)
        return fail_set(fail, -errno, "cannot make the directory %s: %s", dir, strerror(errno));
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/lock", dir) >= (int)sizeof(path))
        return fail_set(fail, -ENAMETOOLONG, "the directory's name is too long: %.100s...", dir);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0)
        return fail_set(fail, -errno, "cannot write in the directory %s: %s: check its owner and mode",
                        dir, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? refuse_second(dir, fd, fail)
                   : fail_set(fail, -errno, "cannot lock %s: %s", path, strerror(errno));
    char note[LOCK_NOTE_SIZE];
    lock_read_note(fd, note);
    write_lines(fd, note); /* the pid is only for people; on a full disk the lock still holds */
    *ret_fd = take_fd(&fd);
    return 0;
}

void lock_read_note(int fd, char ret_note[LOCK_NOTE_SIZE]) { read_line(fd, 1, ret_note); }

int lock_note(int fd, const char *note, struct fail *fail)
{
    if (!write_lines(fd, note) || fdatasync(fd) < 0)
        return fail_set(fail, -errno, "cannot write the lock's note: %s", strerror(errno));
    return 0;
}
