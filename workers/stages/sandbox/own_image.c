#include "workers/stages/sandbox/own_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_gather.h"
#include "workers/files/dirtree_within.h"
#include "workers/runtime/offload.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/masked_paths.h"
#include "workers/stages/sandbox/real_path.h"
#include "workers/stages/sandbox/stage_confirm.h"
#include "workers/stages/sandbox/stage_environment.h"

/* ---- where artifacts lie, and where they come to lie -------------------------------------------------- */

struct gather { /* for the thread that does it */
    const struct job *job;
    const struct stage_sandbox *agents;
    struct stage_sandbox *room;
    const char *agent_roots[STAGE_LAYERS_MAX + 1], *roots[STAGE_LAYERS_MAX + 1];
    size_t agent_count, own, count;                /* own: how many of agent_roots are what the agent left */
    struct dirtree_place from[TASK_ARTIFACTS_MAX]; /* by real paths, of which each is NULL where it leads nowhere */
    char *to[TASK_ARTIFACTS_MAX];
    struct fail *fail;
};

static int find(const char *const *roots, size_t count, const char *whole, char **ret)
{
    char path[PATH_MAX];
    *ret = NULL;
    if (real_path_find(roots, count, whole, path) < 0)
        return 0;
    *ret = strdup(path);
    return *ret ? 0 : -ENOMEM;
}

/* Links that the agent made on the way lead nowhere. */
static int find_ways(struct gather *gather)
{
    const struct task *task = gather->job->task;
    const char *workdir = stage_agents_workdir(gather->agents, gather->job);
    for (size_t i = 0; i < task->artifacts.count; i++) {
        const struct task_artifact *artifact = &task->artifacts.each[i];
        const char *said = artifact->path;
        struct dirtree_place *from = &gather->from[i];
        AUTO_FREE char *whole = said[0] == '/' ? strdup(said) : dirtree_join(workdir, said);
        *from = (struct dirtree_place){.exclude = artifact->exclude, .exclude_count = artifact->exclude_count};
        if (!whole ||
            find(gather->agent_roots + gather->own, gather->agent_count - gather->own, whole, &from->path) < 0 ||
            find(gather->roots, gather->count, whole, &gather->to[i]) < 0)
            return fail_memory(gather->fail);
    }
    return 0;
}

/* ---- gathering ------------------------------------------------------------------------------------------- */

/* What no sandbox is shown of this host. */
static struct dirtree_inode *list_secrets(size_t *ret_count)
{
    struct secret secret;
    size_t count = 0;
    for (size_t at = 0; masked_paths_next(&at, &secret);)
        count++;
    struct dirtree_inode *secrets = calloc(count + 1, sizeof(*secrets));
    *ret_count = 0;
    for (size_t at = 0; secrets && masked_paths_next(&at, &secret);) {
        struct stat it;
        AUTO_FREE char *path = dirtree_join("", secret.path);
        if (path && stat(path, &it) == 0)
            secrets[(*ret_count)++] = (struct dirtree_inode){it.st_dev, it.st_ino};
    }
    return secrets;
}

static int gather_one(struct gather *gather, struct dirtree_stack *stack, int into, size_t i)
{
    const struct dirtree_place *from = &gather->from[i];
    const bool is_trusted = strcmp(gather->job->task->eval_trust, "image") == 0;
    if (is_trusted && host_image_shows(gather->to[i]))
        return 0;
    const bool skips_host = host_image_is(gather->agents->image.path) && !host_image_shows(from->path);
    stack->count = gather->agent_count - skips_host;
    return dirtree_gather(stack, from, into, gather->to[i], gather->fail);
}

static int gather_all(struct gather *gather, int into, const atomic_bool *stop)
{
    size_t hidden, order[TASK_ARTIFACTS_MAX];
    AUTO_FREE struct dirtree_inode *secrets = list_secrets(&hidden);
    struct dirtree_stack stack = {.roots = gather->agent_roots,
                                  .linked = gather->agent_count - 1, /* the last is the image */
                                  .hidden = secrets,
                                  .hidden_count = hidden,
                                  .stop = stop};
    int code = secrets ? find_ways(gather) : fail_memory(gather->fail);
    if (host_image_is(gather->agents->image.path))
        gather->agent_roots[gather->agent_count - 1] = "/";
    const size_t chosen =
        code == 0 ? dirtree_places_choose(gather->from, gather->to, gather->job->task->artifacts.count, order) : 0;
    for (size_t i = 0; i < chosen && code == 0; i++)
        code = gather_one(gather, &stack, into, order[i]);
    if (code == -EFBIG || code == -EACCES || code == -ENAMETOOLONG || code == -EPERM)
        return fail_set(gather->fail, -EINVAL, "eval.artifacts are too many, too large, or not to be read: %.200s",
                        gather->fail->text);
    return code;
}

static int gather_work(void *arg, const atomic_bool *stop)
{
    struct gather *gather = arg;
    const char *path;
    int code = stage_sandbox_add_own(gather->room, gather->job, &path, gather->fail);
    AUTO_CLOSE int into = code < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (into < 0)
        return code < 0 ? code : dirtree_refuse(gather->fail, "open", path);
    code = gather_all(gather, into, stop);
    return code < 0 ? code : layer_dir_seal(&gather->room->layers[gather->room->layer_count - 1], gather->fail);
}

static int gather_from(struct stage_sandbox *room, const struct job *job, const struct stage_sandbox *agents,
                       size_t own, struct fail *fail)
{
    AUTO_FREE struct gather *gather = calloc(1, sizeof(*gather));
    if (!gather)
        return fail_memory(fail);
    *gather = (struct gather){.job = job, .agents = agents, .room = room, .own = own, .fail = fail};
    gather->agent_count = stage_sandbox_roots(agents, gather->agent_roots);
    gather->count = stage_sandbox_roots(room, gather->roots);
    int code = offload_run(gather_work, gather, fail);
    for (size_t i = 0; i < job->task->artifacts.count; i++) {
        free(gather->from[i].path);
        free(gather->to[i]);
    }
    return code;
}

/* What the agent's sandbox stood on, and what it left, are held for as long as that takes. */
static int add_artifacts(struct stage_sandbox *room, const struct job *job, struct fail *fail)
{
    struct stage_sandbox agents = {.part = STAGE_AGENTS, .image = {.lock = -1}};
    int code = stage_sandbox_find_image(&agents, job, fail);
    if (code == 0)
        code = stage_sandbox_add_init(&agents, job, fail);
    const size_t below = agents.layer_count;
    if (code == 0)
        code = stage_sandbox_add_all(&agents, job, fail);
    if (code == 0)
        code = gather_from(room, job, &agents, agents.layer_count - below, fail);
    if (code == 0)
        code = stage_look(job, &agents, fail);
    if (code < 0)
        room->fault = agents.fault;
    stage_sandbox_close(&agents);
    return code;
}

int own_image_add(struct stage_sandbox *room, const struct job *job, struct fail *fail)
{
    int code = job->built ? stage_sandbox_add_parents(room, job, job->built, fail) : 0;
    return code == 0 && job->task->artifacts.count > 0 ? add_artifacts(room, job, fail) : code;
}
