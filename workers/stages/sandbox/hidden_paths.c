#include "workers/stages/sandbox/hidden_paths.h"

#include <fcntl.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"

struct hiding {
    const struct job *job;
    struct stage_sandbox *stage;
    struct fail *fail;
};

static int hide_all(const char *dir, const struct task *task, struct fail *fail)
{
    AUTO_CLOSE int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return dirtree_refuse(fail, "open", dir);
    int code = 0;
    for (size_t i = 0; i < task->hidden_count && code == 0; i++)
        code = dirtree_hide(root, task->hidden[i] + strspn(task->hidden[i], "/"), fail);
    return code;
}

static int hide_work(void *arg, const atomic_bool *stop)
{
    const struct hiding *hiding = arg;
    const char *path;
    (void)stop;
    int code = stage_sandbox_add_own(hiding->stage, hiding->job, &path, hiding->fail);
    if (code == 0)
        code = hide_all(path, hiding->job->task, hiding->fail);
    return code < 0 ? code : layer_dir_seal(&hiding->stage->layers[hiding->stage->layer_count - 1], hiding->fail);
}

int hidden_paths_add(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    struct hiding hiding = {job, stage, fail};
    return job->task->hidden_count ? offload_run(hide_work, &hiding, fail) : 0;
}
