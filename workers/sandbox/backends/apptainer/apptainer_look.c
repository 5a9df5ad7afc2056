/* What apptainer made, looked at from inside: a site's apptainer.conf may have switched parts of it off. */
#include "workers/sandbox/backends/apptainer/apptainer_look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "workers/sandbox/backends/apptainer/apptainer.h"

static const char *const namespaces[APPTAINER_NAMESPACES] = {"pid", "mnt", "ipc", "uts", "net"};

int apptainer_namespaces(int proc, uint64_t ret[APPTAINER_NAMESPACES], struct fail *fail)
{
    for (size_t i = 0; i < APPTAINER_NAMESPACES; i++) {
        char path[32];
        struct stat it;
        snprintf(path, sizeof(path), "self/ns/%s", namespaces[i]);
        if (fstatat(proc, path, &it, 0) < 0)
            return fail_set(fail, -errno, "/proc/%s: %s", path, strerror(errno));
        ret[i] = it.st_ino;
    }
    return 0;
}

int apptainer_check_namespaces(const uint64_t outside[APPTAINER_NAMESPACES],
                               const uint64_t inside[APPTAINER_NAMESPACES], struct fail *fail)
{
    for (size_t i = 0; i < APPTAINER_NAMESPACES; i++)
        if (inside[i] == outside[i])
            return fail_set(fail, -EPROTO, "apptainer made no %s namespace", namespaces[i]);
    return 0;
}

/* ---- mounts ----------------------------------------------------------------------------- */

/* What apptainer makes itself, all of it the container's own. */
static const struct {
    const char *path;
    bool is_with_all_below;
} own[] = {{"/", false},          {"/proc", false},         {"/dev", true},        {"/etc/passwd", false},
           {"/etc/group", false}, {"/etc/hostname", false}, {"/etc/hosts", false}, {"/etc/resolv.conf", false}};

static bool is_at(const char *path, const char *point) { return strcmp(path, point) == 0; }

bool apptainer_is_below(const char *path, const char *point)
{
    size_t len = strlen(point);
    return strncmp(path, point, len) == 0 && path[len] == '/';
}

static bool is_apptainers(const char *path)
{
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (is_at(path, own[i].path) || (own[i].is_with_all_below && apptainer_is_below(path, own[i].path)))
            return true;
    return false;
}

/* What the host has mounted below comes with a mount of ours: as long as nobody can write to it. */
static bool is_ours(const char *path, bool is_writable, const char *points)
{
    for (const char *at = points; *at; at += strlen(at) + 1)
        if ((is_at(path, at + 1) && (!is_writable || *at == 'w')) ||
            (*at == 'r' && !is_writable && apptainer_is_below(path, at + 1)))
            return true;
    return false;
}

/* Format: kernel, filesystems/proc.rst, 3.5; the fifth word is the mount point, the sixth its options. */
int apptainer_check_mount(const char *line, const char *points, struct fail *fail)
{
    char path[PATH_MAX], options[256];
    if (sscanf(line, "%*s %*s %*s %*s %4095s %255s", path, options) != 2)
        return fail_set(fail, -EPROTO, "mountinfo: %.100s", line);
    bool is_writable = strncmp(options, "ro", 2) != 0 || (options[2] != ',' && options[2] != '\0');
    if (is_ours(path, is_writable, points) || is_apptainers(path))
        return 0;
    return fail_set(fail, -EPROTO, "apptainer mounted %.200s (%.64s), which nobody asked for", path, options);
}
