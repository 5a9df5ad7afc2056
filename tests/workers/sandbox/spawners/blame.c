/* Mounts that fail as a disk does: of the type and with the error that stand in the file "broken" beside the scratch
 * directory, for as long as there is one. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/spawner/spawner_inside.h"

int __real_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);

static bool is_broken(const char *type, int *error)
{
    char path[PATH_MAX + 16], broken[32];
    snprintf(path, sizeof(path), "%s/../broken", spawner_init.spawner->scratch);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    return file && type && fscanf(file, "%31s %d", broken, error) == 2 && strcmp(type, broken) == 0;
}

int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    int error;
    if (!is_broken(type, &error))
        return __real_mount(source, target, type, flags, data);
    errno = error;
    return -1;
}
