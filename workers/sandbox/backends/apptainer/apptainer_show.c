/* What a container by apptainer shows of an image, or of the host: a mount point and a mount for each name. */
#include "workers/sandbox/backends/apptainer/apptainer_show.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/sandbox/backends/apptainer/apptainer_look.h"
#include "workers/sandbox/backends/apptainer/apptainer_site.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/container/masked_paths.h"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- the image ---------------------------------------------------------------------------- */

/* Names at the top that are the container's own, or apptainer's, whatever an image has there. */
static bool is_own_name(const char *name)
{
    static const char *const names[] = {
        "proc",           "sys",         "dev",         "run",   "tmp",  "workspace", ".sluice",
        ".singularity.d", "singularity", "environment", ".exec", ".run", ".shell"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int copy_symlink(struct site *site, int image, const char *name, struct fail *fail)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(image, name, target, sizeof(target) - 1);
    if (len < 0)
        return refuse(fail, name);
    target[len] = '\0';
    return symlinkat(target, site->root, name) < 0 ? refuse(fail, name) : 0;
}

/* Read-only, whatever it holds. `name` is relative to the image, and to the skeleton. */
static int bind_one(struct site *site, const char *path, const char *name, mode_t mode, struct fail *fail)
{
    char from[CONTAINER_PATH_SIZE], to[NAME_MAX + 16];
    int code = S_ISDIR(mode) ? site_make_dir(site->root, name, 0755, fail)
                             : site_make_file(site->root, name, 0644, (struct slice){0}, fail);
    if (code == 0 && (snprintf(from, sizeof(from), "%s/%s", path, name) >= (int)sizeof(from) ||
                      snprintf(to, sizeof(to), "/%s", name) >= (int)sizeof(to)))
        code = fail_set(fail, -ENAMETOOLONG, "a path is too long: %.200s/%s", path, name);
    atomic_fetch_add(&site->plan->usage->container_inodes, 1);
    return code == 0 ? apptainer_bind(&site->command, from, to, false, fail) : code;
}

/* Neither sockets nor devices. */
static int show(struct site *site, int image, const char *path, const char *name, struct fail *fail)
{
    struct stat it;
    if (fstatat(image, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(fail, name);
    if (S_ISLNK(it.st_mode))
        return copy_symlink(site, image, name, fail);
    return S_ISDIR(it.st_mode) || S_ISREG(it.st_mode) ? bind_one(site, path, name, it.st_mode, fail) : 0;
}

/* ---- the image "host" ---------------------------------------------------------------------- */

static int show_in_parts(struct site *site, int host, const char *name, struct fail *fail);

static bool is_secret(const char *path)
{
    struct secret secret;
    for (size_t at = 0; masked_paths_next(&at, &secret);)
        if (strcmp(secret.path, path + 1) == 0)
            return true;
    return false;
}

/* All but where apptainer mounts what it works with, since mounts bring those below them with them; and but
 * where the containers are, whose owner is who is inside. */
static int show_of_host(struct site *site, int host, const char *name, struct fail *fail)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "/%s", name);
    if (strcmp(path, site->session) == 0 || strcmp(path, site->containers) == 0 || is_secret(path))
        return 0;
    bool is_above = apptainer_is_below(site->session, path) || apptainer_is_below(site->containers, path);
    return is_above ? show_in_parts(site, host, name, fail) : show(site, host, "", name, fail);
}

static int show_in_parts(struct site *site, int host, const char *name, struct fail *fail)
{
    AUTO_CLOSE int own = site_open_dir(host, name, fail);
    int code = own < 0 ? own : site_make_dir(site->root, name, 0755, fail);
    if (code < 0)
        return code;
    const struct dirent *entry;
    AUTO_DIR stream = dir_stream_open(own);
    if (!stream)
        return refuse(fail, name);
    while ((code = dir_stream_next(stream, &entry)) > 0) {
        char below[PATH_MAX];
        if (snprintf(below, sizeof(below), "%s/%s", name, entry->d_name) < PATH_MAX &&
            (code = show_of_host(site, host, below, fail)) < 0)
            return code;
    }
    return code < 0 ? refuse(fail, name) : 0;
}

/* What is mounted below those may be writable, unless it is mounted by its own name. */
static int show_mounts_of_host(struct site *site, struct fail *fail)
{
    char line[2 * PATH_MAX], path[PATH_MAX];
    struct apptainer_command *command = &site->command;
    const size_t shown = command->bind_count;
    AUTO_FCLOSE FILE *mounts = fopen("/proc/self/mountinfo", "re");
    int code = mounts ? 0 : refuse(fail, "mountinfo");
    while (code == 0 && fgets(line, sizeof(line), mounts)) {
        bool is_shown = false;
        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) != 1)
            continue;
        for (size_t i = 0; i < shown; i++)
            is_shown |= apptainer_is_below(path, command->binds[i].to);
        if (is_shown && access(path, F_OK) == 0)
            code = apptainer_bind(command, path, path, false, fail);
    }
    return code;
}

/* Over what is shown by now. */
static int mask_paths_of(struct site *site, struct fail *fail)
{
    char empty[CONTAINER_PATH_SIZE], nothing[CONTAINER_PATH_SIZE], path[PATH_MAX];
    struct secret secret;
    int code = site_make_dir(site->disk, "empty", 0555, fail);
    if (code == 0)
        code = site_make_file(site->disk, "nothing", 0444, (struct slice){0}, fail);
    if (code == 0 && (snprintf(empty, sizeof(empty), "%s/empty", site->path) >= (int)sizeof(empty) ||
                      snprintf(nothing, sizeof(nothing), "%s/nothing", site->path) >= (int)sizeof(nothing)))
        code = fail_set(fail, -ENAMETOOLONG, "a path is too long: %.200s", site->path);
    const size_t shown = site->command.bind_count;
    for (size_t at = 0; code == 0 && masked_paths_next(&at, &secret);) {
        bool is_shown = false;
        snprintf(path, sizeof(path), "/%s", secret.path);
        for (size_t i = 0; i < shown; i++)
            is_shown |= apptainer_is_below(path, site->command.binds[i].to);
        if (is_shown && access(path, F_OK) == 0)
            code = apptainer_bind(&site->command, secret.is_dir ? empty : nothing, path, false, fail);
    }
    return code;
}

int site_show_host(struct site *site, struct fail *fail)
{
    AUTO_CLOSE int host = site_open_dir(AT_FDCWD, "/", fail);
    int code = host < 0 ? host : 0;
    const char *name;
    for (size_t i = 0; code == 0 && (name = host_image_name(i)); i++)
        if (faccessat(host, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            code = show_of_host(site, host, name, fail);
    if (code == 0)
        code = show_mounts_of_host(site, fail);
    return code == 0 ? mask_paths_of(site, fail) : code;
}

/* ---- an image of the task's own ------------------------------------------------------------ */

/* -EINVAL for one that is not there, -ENOMEDIUM for one that cannot be shown: both are its own fault. */
int site_show_image(struct site *site, struct fail *fail)
{
    const char *path = site->plan->image;
    int code;
    const struct dirent *entry;
    AUTO_DIR stream = opendir(path);
    if (!stream) {
        code = fail_set(fail, -errno, "image %s: %s", path, strerror(errno));
        return code == -ENOENT || code == -ENOTDIR ? fail->code = -EINVAL : code;
    }
    while ((code = dir_stream_next(stream, &entry)) > 0) {
        if (is_own_name(entry->d_name))
            continue;
        code = show(site, dirfd(stream), path, entry->d_name, fail);
        if (code < 0)
            return code == -EINVAL || code == -E2BIG ? fail->code = -ENOMEDIUM : code;
    }
    return code < 0 ? fail_set(fail, code, "image %s: %s", path, strerror(-code)) : 0;
}
