#include "workers/agents/harnesses/harness_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/images/list.h"

void harness_dirs_finish(struct harness_dirs *dirs)
{
    while (dirs->count > 0) {
        struct harness_dir *last = &dirs->each[--dirs->count];
        free(last->path);
        if (last->fd >= 0)
            close(last->fd);
    }
}

const struct harness_dir *harness_dirs_get(const struct harness_dirs *dirs, const char *name)
{
    for (size_t i = 0; dirs && i < dirs->count; i++)
        if (strcmp(dirs->each[i].name, name) == 0)
            return &dirs->each[i];
    return NULL;
}

/* ---- what it may be ----------------------------------------------------------------------------- */

static int refuse_given(struct fail *fail, const char *text, const char *why)
{
    return fail_set(fail, -EINVAL, "--harness %.400s: %s", text, why);
}

static int refuse_name(struct fail *fail, const char *text)
{
    char known[256];
    program_list(known, sizeof(known));
    return fail_set(fail, -EINVAL, "--harness %.400s: there is no harness of that name; there are: %s", text, known);
}

/* The program may be a link to what only those inside find. */
static int check_program(const struct program *program, const char *text, const char *real, struct fail *fail)
{
    char path[PATH_MAX];
    struct stat it;
    if (snprintf(path, sizeof(path), "%s/bin/%s", real, program->file) >= (int)sizeof(path))
        return refuse_given(fail, text, strerror(ENAMETOOLONG));
    if (lstat(path, &it) == 0)
        return 0;
    return fail_set(fail, -EINVAL,
                    "--harness %.400s: it has no bin/%s (sluice harness install %s makes such a directory)", text,
                    program->file, program->name);
}

static int check_dir(const struct program *program, const struct image_list *own, const char *text, const char *real,
                     struct fail *fail)
{
    struct stat it;
    if (stat(real, &it) < 0)
        return refuse_given(fail, text, strerror(errno));
    if (!S_ISDIR(it.st_mode))
        return refuse_given(fail, text, "it is not a directory");
    if (image_list_is_own(own, real))
        return refuse_given(fail, text, "it is, holds or lies in what is the host's or the worker's own");
    return check_program(program, text, real, fail);
}

/* False: it is being removed, or was. */
static bool hold(const char *real, int *ret)
{
    struct stat opened, there;
    AUTO_CLOSE int fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret = -1;
    if (fd < 0)
        return true;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        return errno != EWOULDBLOCK;
    if (fstat(fd, &opened) < 0 || stat(real, &there) < 0 || opened.st_ino != there.st_ino ||
        opened.st_dev != there.st_dev)
        return false;
    *ret = take_fd(&fd);
    return true;
}

/* Takes the path. False: as hold. */
static bool keep(struct harness_dirs *dirs, const struct program *program, char **real)
{
    int fd;
    if (!hold(*real, &fd))
        return false;
    dirs->each[dirs->count++] = (struct harness_dir){program->name, take_ptr(real), fd};
    return true;
}

int harness_dirs_add(struct harness_dirs *dirs, const struct image_list *own, const char *text, struct fail *fail)
{
    const char *equals = strchr(text, '=');
    const struct program *program = equals ? program_find(slice_of(text, (size_t)(equals - text))) : NULL;
    if (!equals || equals == text || !equals[1])
        return refuse_given(fail, text, "not NAME=DIR");
    if (!program)
        return refuse_name(fail, text);
    if (harness_dirs_get(dirs, program->name))
        return refuse_given(fail, text, "its directory was given before");
    AUTO_FREE char *real = realpath(equals + 1, NULL);
    if (!real)
        return refuse_given(fail, text, strerror(errno));
    int code = check_dir(program, own, text, real, fail);
    return code < 0 || keep(dirs, program, &real) ? code : refuse_given(fail, text, "it is being removed");
}

/* ---- what is installed -------------------------------------------------------------------------- */

static bool is_set(const char *value) { return value && *value; }

static bool name_installed(const char *name, char *ret, size_t size)
{
    const char *cache = getenv("SLUICE_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int len = is_set(cache)  ? snprintf(ret, size, "%s/harness/%s/current", cache, name)
              : is_set(xdg)  ? snprintf(ret, size, "%s/sluice/harness/%s/current", xdg, name)
              : is_set(home) ? snprintf(ret, size, "%s/.cache/sluice/harness/%s/current", home, name)
                             : (int)size;
    return len < (int)size;
}

void harness_dirs_find(struct harness_dirs *dirs, const struct image_list *own)
{
    const struct program *program;
    char path[PATH_MAX];
    struct fail fail;
    for (size_t i = 0; (program = program_at(i)); i++) {
        if (harness_dirs_get(dirs, program->name) || !name_installed(program->name, path, sizeof(path)))
            continue;
        AUTO_FREE char *real = realpath(path, NULL);
        if (real && check_dir(program, own, path, real, &fail) == 0)
            keep(dirs, program, &real);
    }
}
