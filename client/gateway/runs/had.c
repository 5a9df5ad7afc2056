#include "client/gateway/runs/had.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"

enum { REWRITE_LINES = 4096 /* lines that count no longer, before the file is written anew */ };

struct had {
    int fd;
    struct table names; /* of each its own text */
    size_t lines;
    bool is_cut; /* the file's last line has no end: a disk was full, or a kill came in between */
};

static bool know(struct had *had, const char *name)
{
    char *copy = strdup(name);
    if (copy && table_put(&had->names, slice_from_str(copy), copy))
        return true;
    free(copy);
    return false;
}

static void make_directories(const char *path)
{
    char part[4096];
    snprintf(part, sizeof(part), "%s", path);
    for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(part, 0700); /* opening the file tells */
        *at = '/';
    }
}

/* What is too long, or was cut off, is no name, and hides none that comes after it. */
static void read_names(struct had *had)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    FILE *in = fdopen(dup(had->fd), "r");
    for (ssize_t len; in && (len = getline(&line, &size, in)) > 0;) {
        had->is_cut = line[len - 1] != '\n';
        if (had->is_cut)
            break;
        line[len - 1] = '\0';
        had->lines++;
        if (len <= HAD_NAME_SIZE && !had_has(had, line))
            know(had, line);
    }
    if (in)
        fclose(in);
}

struct had *had_open(const char *path, struct fail *fail)
{
    struct had *had = calloc(1, sizeof(*had));
    if (!had) {
        fail_memory(fail);
        return NULL;
    }
    make_directories(path);
    had->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (had->fd < 0 || flock(had->fd, LOCK_EX | LOCK_NB) < 0) {
        fail_set(fail, -errno, "--state %s: %s%s", path, strerror(errno),
                 errno == EWOULDBLOCK ? ": another gateway uses it" : "");
        had_close(&had);
        return NULL;
    }
    read_names(had);
    return had;
}

void had_close(struct had **handle)
{
    struct had *had = take_ptr(handle);
    size_t at = 0;
    if (!had)
        return;
    for (char *name; (name = table_next(&had->names, &at));)
        free(name);
    table_finish(&had->names);
    if (had->fd >= 0)
        close(had->fd);
    free(had);
}

bool had_has(const struct had *had, const char *name) { return table_find(&had->names, slice_from_str(name)) != NULL; }

bool had_add(struct had *had, const char *name)
{
    char line[HAD_NAME_SIZE + 2];
    if (had_has(had, name))
        return true;
    know(had, name);
    had->lines++;
    const int len = snprintf(line, sizeof(line), "%s%s\n", had->is_cut ? "\n" : "", name);
    if (len >= (int)sizeof(line))
        return false;
    const ssize_t written = write(had->fd, line, (size_t)len);
    if (written > 0)
        had->is_cut = written < len;
    return written == len;
}

/* In place, as the lock is on this file; what a kill leaves half written are names that are told again at worst. */
static void rewrite(struct had *had)
{
    AUTO_BUFFER all = {0};
    size_t at = 0;
    for (const char *name; (name = table_next(&had->names, &at));)
        buffer_printf(&all, "%s\n", name);
    if (all.failed || ftruncate(had->fd, 0) < 0)
        return;
    const ssize_t written = write(had->fd, all.data, all.len);
    had->is_cut = written > 0 && written < (ssize_t)all.len;
    if (written == (ssize_t)all.len)
        had->lines = had->names.count;
}

void had_remove(struct had *had, const char *name)
{
    free(table_take(&had->names, slice_from_str(name)));
    if (had->lines > REWRITE_LINES + 2 * had->names.count)
        rewrite(had);
}
