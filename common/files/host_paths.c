#include "common/files/host_paths.h"

#include <stddef.h>
#include <string.h>

/* Whoever runs us; the root is above all of them. */
static const char *const never[] = {"/proc", "/sys", "/dev", "/boot", "/etc", "/usr/local/etc"};
/* In one of those, and anybody's. */
static const char shared_memory[] = "/dev/shm";

bool host_path_is_in(const char *path, const char *dir)
{
    const size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0' || len == 1);
}

bool host_path_is_inside(const char *path)
{
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]) && !host_path_is_in(path, shared_memory); i++)
        if (host_path_is_in(path, never[i]))
            return true;
    return false;
}

bool host_path_is_own(const char *path)
{
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        if (host_path_is_in(never[i], path))
            return true;
    return host_path_is_inside(path);
}
