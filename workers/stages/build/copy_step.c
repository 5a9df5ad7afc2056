#include "workers/stages/build/copy_step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"
#include "workers/sources/source.h"
#include "workers/stages/sandbox/base.h"

struct copying_step {
    struct build *build;
    const struct stage_step *step;
    struct stage_sandbox *room, from; /* from: of another stage, or of an image */
    int root;                         /* what is copied from */
    bool is_into;                     /* the destination is a directory */
};

/* ---- what is copied from -------------------------------------------------------------------------- */

static int open_from(struct copying_step *copying)
{
    struct build *build = copying->build;
    const struct stage_step *step = copying->step;
    if (step->from_stage < 0 && !step->from) {
        copying->root = build->context.root < 0 ? -1 : dup(build->context.root);
        return copying->root >= 0 || step->source_count == 0
                   ? 0
                   : build_refuse(build, step, "there is nothing to copy from: the task has no build.context");
    }
    const size_t stage = (size_t)(step->from_stage < 0 ? 0 : step->from_stage);
    const struct image_config as_root = {.user = (char[]){"root"}, .workdir = (char[]){"/"}};
    int code = build_open_room(build, step->from ? step->from : base_of(&build->stages, stage),
                               step->from ? NULL : &build->built[stage].layers, &as_root, &copying->from);
    if (code == -EINVAL)
        return build_refuse(build, step, "%s", build->fail.text);
    if (code == 0)
        code = copying->root = sandbox_open_file(copying->from.sandbox, "/", O_RDONLY | O_DIRECTORY, 0, &build->fail);
    return code < 0 ? code : 0;
}

/* ---- one source ------------------------------------------------------------------------------------ */

static int refuse_copy(struct copying_step *copying, int code, const char *what)
{
    struct build *build = copying->build;
    return blame_is_file_fault(code)
               ? build_refuse(build, copying->step, "cannot copy %.300s: %s", what, build->fail.text)
               : code;
}

static char *place_of(const struct copying_step *copying, const char *name)
{
    const char *to = copying->step->destination;
    const size_t len = strlen(to);
    char *place = NULL;
    if (!copying->is_into)
        return strdup(to);
    return asprintf(&place, "%s%s%s", to, len > 0 && to[len - 1] == '/' ? "" : "/", name) < 0 ? NULL : place;
}

struct unpacking {
    struct copying_step *copying;
    int file;
    struct layer_dir dir;
    int root;
    bool is_tar;
};

static int unpack_work(void *arg, const atomic_bool *stop)
{
    struct unpacking *unpacking = arg;
    struct build *build = unpacking->copying->build;
    int code = layer_dir_make(build->job->context->layers.cache, &unpacking->dir, &build->fail);
    if (code < 0)
        return code;
    unpacking->root = open(unpacking->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (unpacking->root < 0)
        return dirtree_refuse(&build->fail, "open", unpacking->dir.path);
    return source_unpack(unpacking->file, unpacking->root, build->job->task->limits.disk_mib, stop, &unpacking->is_tar,
                         &build->fail);
}

/* A tar, packed or not, by what is in it: its content. 1: it is none. */
static int add_tar(struct copying_step *copying, int file, const char *path)
{
    struct unpacking unpacking = {.copying = copying, .file = file, .root = -1};
    int code = offload_run(unpack_work, &unpacking, &copying->build->fail);
    if (code == 0 && unpacking.is_tar)
        code = sandbox_copy_in(copying->room->sandbox, unpacking.root, copying->step->destination, copying->step->mode,
                               &copying->build->fail);
    cleanup_close(&unpacking.root);
    layer_dir_discard(&unpacking.dir);
    return code < 0 ? refuse_copy(copying, code, path) : unpacking.is_tar ? 0 : 1;
}

static int copy_path(struct copying_step *copying, const char *path)
{
    struct build *build = copying->build;
    struct stat it;
    AUTO_CLOSE int file = build_open(copying->root, path, O_RDONLY | O_NONBLOCK);
    if (file < 0 || fstat(file, &it) < 0)
        return build_refuse(build, copying->step, "cannot open %.300s: %s", path, strerror(errno));
    if (!S_ISDIR(it.st_mode) && !S_ISREG(it.st_mode))
        return build_refuse(build, copying->step, "%.300s is neither a file nor a directory", path);
    if (copying->step->kind == STEP_ADD && S_ISREG(it.st_mode)) {
        int code = add_tar(copying, file, path);
        if (code <= 0)
            return code;
        if (lseek(file, 0, SEEK_SET) < 0)
            return build_refuse(build, copying->step, "cannot read %.300s", path);
    }
    AUTO_FREE char *place = S_ISDIR(it.st_mode) ? strdup(copying->step->destination)
                                                : place_of(copying, dirtree_leaf(path));
    if (!place)
        return fail_memory(&build->fail);
    int code = sandbox_copy_in(copying->room->sandbox, file, place, copying->step->mode, &build->fail);
    return code < 0 ? refuse_copy(copying, code, path) : 0;
}

static int refuse_match(struct copying_step *copying, int code, const char *source)
{
    if (code == -ENOENT || code == -ENOTDIR || code == -ELOOP)
        return build_refuse(copying->build, copying->step, "%.300s is not there%s", source,
                            copying->step->from || copying->step->from_stage >= 0
                                ? ""
                                : ", in build.context without what its .dockerignore names");
    if (code == -ENOMEM)
        return fail_memory(&copying->build->fail);
    return build_refuse(copying->build, copying->step, "%.300s: %s", source, strerror(-code));
}

static int copy_source(struct copying_step *copying, const char *source)
{
    char **paths;
    size_t count;
    int code = build_match(copying->root, source, &paths, &count);
    if (code < 0)
        code = refuse_match(copying, code, source);
    if (code == 0 && count > 1)
        copying->is_into = true;
    for (size_t i = 0; i < count && code == 0; i++)
        code = copy_path(copying, paths[i]);
    build_match_finish(paths, count);
    return code;
}

/* ---- the step ------------------------------------------------------------------------------------------ */

static int write_heredocs(struct copying_step *copying)
{
    int code = 0;
    for (size_t i = 0; i < copying->step->file_count && code == 0; i++) {
        const struct dockerfile_heredoc *file = &copying->step->files[i];
        AUTO_FREE char *place = place_of(copying, file->name);
        if (!place)
            return fail_memory(&copying->build->fail);
        code = sandbox_write_file(copying->room->sandbox, place, file->content, strlen(file->content),
                                  copying->step->mode ? copying->step->mode : 0644, &copying->build->fail);
        if (code < 0)
            code = refuse_copy(copying, code, file->name);
    }
    return code;
}

/* It ends with "/", or is one. */
static bool is_directory(struct copying_step *copying)
{
    const char *to = copying->step->destination;
    struct fail ignored = {0};
    if (to[strlen(to) - 1] == '/')
        return true;
    AUTO_CLOSE int dir = sandbox_open_file(copying->room->sandbox, to, O_RDONLY | O_DIRECTORY, 0, &ignored);
    return dir >= 0;
}

int copy_step_run(struct build *build, const struct stage_step *step, struct stage_sandbox *room)
{
    struct copying_step copying = {.build = build, .step = step, .room = room, .root = -1};
    copying.is_into = is_directory(&copying);
    int code = open_from(&copying);
    for (size_t i = 0; i < step->source_count && code == 0; i++)
        code = copy_source(&copying, step->sources[i]);
    if (code == 0)
        code = write_heredocs(&copying);
    cleanup_close(&copying.root);
    stage_sandbox_close(&copying.from);
    return code;
}

/* ---- its key --------------------------------------------------------------------------------------------- */

struct adding {
    struct build *build;
    const struct stage_step *step;
    struct digest *digest;
    const char *missing;
};

static void add_text(struct digest *digest, const char *text) { digest_add(digest, slice_of(text, strlen(text) + 1)); }

static int add_source(struct adding *adding, const char *source)
{
    char **paths;
    size_t count;
    const int root = adding->build->context.root;
    int code = root < 0 ? -ENOENT : build_match(root, source, &paths, &count);
    adding->missing = source;
    if (code < 0)
        return code;
    for (size_t i = 0; i < count && code == 0; i++) {
        add_text(adding->digest, dirtree_leaf(paths[i]));
        code = build_content_add(adding->digest, root, paths[i]);
    }
    build_match_finish(paths, count);
    return code;
}

static int add_work(void *arg, const atomic_bool *stop)
{
    struct adding *adding = arg;
    int code = 0;
    for (size_t i = 0; i < adding->step->source_count && code == 0; i++)
        code = atomic_load(stop) ? -ECANCELED : add_source(adding, adding->step->sources[i]);
    return code;
}

int copy_step_add(struct build *build, const struct stage_step *step, struct digest *digest)
{
    char mode[16], key[DIGEST_SIZE] = "";
    struct adding adding = {.build = build, .step = step, .digest = digest};
    snprintf(mode, sizeof(mode), "%o", step->mode);
    add_text(digest, mode);
    add_text(digest, step->destination);
    for (size_t i = 0; i < step->file_count; i++) {
        add_text(digest, step->files[i].name);
        add_text(digest, step->files[i].content);
    }
    if (step->from_stage < 0 && !step->from) {
        struct copying_step copying = {.build = build, .step = step};
        int code = build->context.root < 0 && step->source_count > 0
                       ? build_refuse(build, step, "there is nothing to copy from: the task has no build.context")
                       : offload_run(add_work, &adding, &build->fail);
        return code < 0 && !build->is_tasks && code != -ECANCELED && code != -ETIMEDOUT
                   ? refuse_match(&copying, code, adding.missing)
                   : code;
    }
    int code = step->from ? build_base_key(build, step->from, key) : 0;
    add_text(digest, step->from ? key : build->built[step->from_stage].key);
    for (size_t i = 0; i < step->source_count; i++)
        add_text(digest, step->sources[i]);
    return code == -EINVAL ? build_refuse(build, step, "%s", build->fail.text) : code;
}
