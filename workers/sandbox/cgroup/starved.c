#include "workers/sandbox/cgroup/starved.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { TEXT_MAX = 16384 };

const char *starved_root = "";

static bool read_text(const char *path, char text[TEXT_MAX])
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* "oom_kill 3" in a line of its own. */
static bool read_count(const char *path, uint64_t *ret)
{
    static const char key[] = "oom_kill ";
    char text[TEXT_MAX];
    if (!read_text(path, text))
        return false;
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, key, sizeof(key) - 1) == 0) {
            *ret = strtoull(line + sizeof(key) - 1, NULL, 10);
            return true;
        }
    return false;
}

/* In the group or, where memory is not counted there (or its name is one of outside a container), above. */
static bool read_upwards(const char *mount, char *group, const char *file, uint64_t *ret)
{
    for (;;) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
        if (read_count(path, ret))
            return true;
        char *slash = strrchr(group, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
}

/* Lines of NUMBER:CONTROLLERS:PATH; version 2 has 0 and no controllers. */
static bool read_groups(uint64_t *ret)
{
    char path[PATH_MAX], text[TEXT_MAX], *rest = text, *line;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", starved_root);
    if (!read_text(path, text))
        return false;
    while ((line = strsep(&rest, "\n"))) {
        const bool is_second = strncmp(line, "0::", 3) == 0;
        char *group = is_second ? line + 3 : strstr(line, ":memory:");
        if (!group)
            continue;
        group += is_second ? 0 : strlen(":memory:");
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", starved_root, is_second ? "" : "/memory");
        if (read_upwards(path, group, is_second ? "memory.events" : "memory.oom_control", ret))
            return true;
    }
    return false;
}

uint64_t starved_count(void)
{
    char path[PATH_MAX];
    uint64_t count = 0;
    snprintf(path, sizeof(path), "%s/proc/vmstat", starved_root);
    if (!read_groups(&count))
        read_count(path, &count);
    return count;
}
