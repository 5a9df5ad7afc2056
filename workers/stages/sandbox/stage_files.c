#include "workers/stages/sandbox/stage_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"
#include "workers/sources/source.h"

#define STAGED "source" /* its name in the directory that it is copied to first */

int stage_copy_source(const struct job *job, const char *source, int root, const char *place, const atomic_bool *stop,
                      bool *ret_is_file, struct fail *fail)
{
    const struct source_order order = {
        .dirs = job->context->task_dirs, .source = source, .disk_mib = job->task->limits.disk_mib, .stop = stop};
    return source_copy(&order, root, place, ret_is_file, fail);
}

/* ---- first to a directory of the cache, where it is looked at, then inside ---------------------- */

struct staging {
    const struct job *job;
    const char *source;
    struct layer_dir dir;
    int fd; /* of what was staged */
    struct fail *fail;
};

static int staging_work(void *arg, const atomic_bool *stop)
{
    struct staging *staging = arg;
    bool is_file = false;
    int code = layer_dir_make(staging->job->context->layers.cache, &staging->dir, staging->fail);
    AUTO_CLOSE int root = code < 0 ? -1 : open(staging->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return code < 0 ? code : dirtree_refuse(staging->fail, "open", staging->dir.path);
    code = stage_copy_source(staging->job, staging->source, root, STAGED, stop, &is_file, staging->fail);
    if (code < 0)
        return code;
    staging->fd = dirtree_open_own(root, STAGED, O_RDONLY | O_NONBLOCK, is_file ? S_IFREG : S_IFDIR);
    return staging->fd < 0 ? dirtree_refuse(staging->fail, "open", staging->source) : 0;
}

/* *ret_is_nodes: what failed was the copy on this node, and not by the source's fault. */
static int put_source(const struct job *job, struct stage_sandbox *stage, const struct task_file *file,
                      bool *ret_is_nodes, struct fail *fail)
{
    struct staging staging = {.job = job, .source = file->source, .fd = -1, .fail = fail};
    int code = offload_run(staging_work, &staging, fail);
    *ret_is_nodes = code < 0 && code != -EINVAL;
    if (code == 0)
        code = sandbox_copy_in(stage->sandbox, staging.fd, file->path, 0, fail);
    cleanup_close(&staging.fd);
    layer_dir_discard(&staging.dir);
    return code;
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* *ret_is_its: what failed is the file's fault. */
static int put_file(const struct job *job, struct stage_sandbox *stage, const struct task_file *file, bool *ret_is_its,
                    struct fail *fail)
{
    bool is_nodes = false;
    int code = file->source
                   ? put_source(job, stage, file, &is_nodes, fail)
                   : sandbox_write_file(stage->sandbox, file->path, file->content, file->content_len, file->mode, fail);
    *ret_is_its = blame_is_file_fault(code) && !is_nodes && !sandbox_breach(stage->sandbox);
    return code;
}

bool stage_put_files(struct job *job, struct stage_sandbox *stage, const struct task_file *files, size_t count)
{
    struct fail fail = {0};
    bool is_its = false;
    for (size_t i = 0; i < count; i++) {
        int code = put_file(job, stage, &files[i], &is_its, &fail);
        if (is_its)
            job_set_outcome(job, OUTCOME_TASK, "cannot write the file %.400s: %s", files[i].path, fail.text);
        else if (code < 0)
            stage_end_failed(job, stage, BLAME_TASK, code, &fail);
        if (code < 0)
            return false;
    }
    return true;
}

int stage_give_files(const struct job *job, struct stage_sandbox *stage, const struct task_file *files, size_t count,
                     struct fail *fail)
{
    struct fail why = {0};
    bool is_its = false;
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        code = put_file(job, stage, &files[i], &is_its, &why);
        if (is_its)
            return fail_set(fail, -EINVAL, "cannot write the file %.400s: %s", files[i].path, why.text);
    }
    return code < 0 ? fail_set(fail, code, "%s", why.text) : 0;
}
