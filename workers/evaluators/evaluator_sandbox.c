#include "workers/evaluators/evaluator_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "schemas/task/steps.h"
#include "workers/evaluators/judged.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"
#include "workers/stages/sandbox/stage_environment.h"
#include "workers/stages/sandbox/own_image.h"
#include "workers/stages/sandbox/stage_files.h"

struct place { /* what the paths of a task are to be read by */
    const char *image, *workdir;
    const struct job *job;
    const atomic_bool *stop;
};

/*
 * A path of the sandbox within a layer. Where the image has merged /usr (/bin is a symlink to
 * usr/bin), the layer must say usr/bin: a directory "bin" of its own would cover the symlink.
 */
static char *path_in_layer(const struct place *place, const char *path)
{
    char link[PATH_MAX], to[64];
    char *result = NULL;
    AUTO_FREE char *whole = path[0] == '/' ? NULL : dirtree_join(place->workdir, path);
    if (path[0] != '/' && !whole)
        return NULL;
    const char *image = place->image;
    path = whole ? whole : path;
    path += strspn(path, "/");
    size_t first = strcspn(path, "/");
    snprintf(link, sizeof(link), "%s/%.*s", strcmp(image, "host") == 0 ? "" : image, (int)first, path);
    ssize_t len = path[first] ? readlink(link, to, sizeof(to) - 1) : -1;
    to[len < 0 ? 0 : len] = '\0';
    const char *usr = to + strspn(to, "/");
    if (strncmp(usr, "usr/", 4) != 0 || strchr(usr + 4, '/'))
        return strdup(path);
    return asprintf(&result, "%s%s", usr, path + first) < 0 ? NULL : result;
}

static int put_source(int root, const struct place *place, const char *source, const char *path, struct fail *fail)
{
    bool is_file;
    AUTO_FREE char *clean = dirtree_clean_path(path);
    if (!clean)
        return fail_set(fail, -EINVAL, "no file can be at %.200s", path);
    return stage_copy_source(place->job, source, root, clean, place->stop, &is_file, fail);
}

static int put_file(int root, const struct place *place, const struct task_file *file, struct fail *fail)
{
    AUTO_FREE char *path = path_in_layer(place, file->path);
    if (!path)
        return fail_memory(fail);
    return file->source ? put_source(root, place, file->source, path, fail)
                        : dirtree_write(root, path, slice_of(file->content, file->content_len), file->mode, fail);
}

static int hide_reward_file(int root, const struct place *place, const struct task *task, struct fail *fail)
{
    if (!task->eval_reward_file)
        return 0;
    AUTO_FREE char *path = path_in_layer(place, task->eval_reward_file);
    return path ? dirtree_hide(root, path, fail) : fail_memory(fail);
}

/* Whatever the agent left in the directory of a verifier's rewards, and on the way to it. */
static int hide_rewards(int root, const struct place *place, const struct task *task, struct fail *fail)
{
    AUTO_FREE char *path = path_in_layer(place, task_reward_dir(task));
    return path ? dirtree_make_opaque(root, path, 0777, fail) : fail_memory(fail);
}

static int fill_own_layer(const char *dir, const struct place *place, const struct task *task, struct fail *fail)
{
    AUTO_CLOSE int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return dirtree_refuse(fail, "open", dir);
    int code = task_has_verifier(task) ? hide_rewards(root, place, task, fail) : 0;
    for (size_t i = 0; i < task->eval_file_count && code == 0; i++)
        code = put_file(root, place, &task->eval_files[i], fail);
    return code < 0 || task_has_verifier(task) ? code : hide_reward_file(root, place, task, fail);
}

struct own { /* for the thread that fills it: the image is looked at, which may be far away */
    const struct job *job;
    struct stage_sandbox *room;
    struct fail *fail;
};

static int own_work(void *arg, const atomic_bool *stop)
{
    const struct own *own = arg;
    const char *path;
    const struct place place = {own->room->image.path, stage_sandbox_workdir(own->room, own->job), own->job, stop};
    int code = stage_sandbox_add_own(own->room, own->job, &path, own->fail);
    if (code == 0 && (code = fill_own_layer(path, &place, own->job->task, own->fail)) < 0 && code != -ENOSPC &&
        blame_is_file_fault(code)) {
        fail_wrap(own->fail, "what eval has of files");
        return -EINVAL; /* of the plan: the task's fault */
    }
    return code < 0 ? code : layer_dir_seal(&own->room->layers[own->room->layer_count - 1], own->fail);
}

static int add_own(struct stage_sandbox *room, struct job *job, struct fail *fail)
{
    struct own own = {.job = job, .room = room, .fail = fail};
    return offload_run(own_work, &own, fail);
}

static int open_room(struct stage_sandbox *room, struct job *job, bool over_agents, struct fail *fail)
{
    const struct task *task = job->task;
    const bool is_own = task_has_own_image(task);
    int code = stage_sandbox_find_image(room, job, fail);
    if (code == 0)
        code = is_own ? own_image_add(room, job, fail) : stage_sandbox_add_init(room, job, fail);
    if (code == 0 && over_agents && !is_own)
        code = stage_sandbox_add_run(room, job, fail);
    if (code == 0 && (task->eval_file_count || task->eval_reward_file || task_has_verifier(task)))
        code = add_own(room, job, fail);
    return code < 0 ? code : stage_sandbox_open(room, job, fail);
}

int evaluator_sandbox_open_fresh(struct stage_sandbox *room, struct job *job, struct fail *fail)
{
    return open_room(room, job, false, fail);
}

/* ---- the agent's own ----------------------------------------------------------------------- */

static int clear_rewards(struct sandbox *sandbox, const struct task *task, struct fail *fail)
{
    if (task_has_verifier(task))
        return sandbox_remake_dir(sandbox, task_reward_dir(task), 0777, fail);
    return task->eval_reward_file ? sandbox_clear_path(sandbox, task->eval_reward_file, fail) : 0;
}

/* A text replaces what lies there; what a source holds is put beside that. */
static int put_there(struct job *job, struct stage_sandbox *room, const struct task_file *file, struct fail *fail)
{
    int code = file->source ? 0 : sandbox_clear_path(room->sandbox, file->path, fail);
    return code == 0 ? stage_give_files(job, room, file, 1, fail) : code;
}

/* Of a step: a link there would have its files survive the step, for the agent of the next to find. */
static int clear_tests(struct sandbox *sandbox, const struct job *job, struct fail *fail)
{
    const bool has_files = job->agent_goes_on && job->task->eval_file_count > 0;
    return has_files ? sandbox_clear_path(sandbox, TASK_STEP_TESTS, fail) : 0;
}

/* As its files and processes are. */
static int take_agents(struct stage_sandbox *room, struct job *job, struct fail *fail)
{
    *room = *job->agents;
    *job->agents = (struct stage_sandbox){0};
    int code = stage_sandbox_hand_over(room, job, STAGE_EVALUATORS, fail);
    if (code < 0)
        return code;
    code = clear_rewards(room->sandbox, job->task, fail);
    if (code == 0)
        code = clear_tests(room->sandbox, job, fail);
    for (size_t i = 0; i < job->task->eval_file_count && code == 0; i++)
        code = put_there(job, room, &job->task->eval_files[i], fail);
    if (code == 0 || !blame_is_file_fault(code))
        return code;
    fail_wrap(fail, "what eval has of files");
    return fail->code = -EINVAL; /* of the task, or the agent did not let it be */
}

void evaluator_sandbox_close(struct stage_sandbox *room, struct job *job)
{
    if (!job->agents || !job->agent_goes_on || !room->sandbox) {
        stage_sandbox_close(room);
        return;
    }
    *job->agents = *room;
    job->agents->closing_by_ms = 0;
    *room = (struct stage_sandbox){0};
}

int evaluator_sandbox_clear(struct stage_sandbox *agents, struct job *job, struct fail *fail)
{
    judged_clear(agents->sandbox);
    int code = clear_rewards(agents->sandbox, job->task, fail);
    if (code == 0 && job->task->eval_file_count > 0)
        code = sandbox_clear_path(agents->sandbox, TASK_STEP_TESTS, fail);
    if (code == 0 || !blame_is_file_fault(code))
        return code;
    fail_wrap(fail, "what eval had of files");
    return fail->code = -EINVAL;
}

int evaluator_sandbox_open(struct stage_sandbox *room, struct job *job, struct fail *fail)
{
    int code = job->agents ? take_agents(room, job, fail) : open_room(room, job, true, fail);
    return code < 0 ? code : judged_write(room->sandbox, job, fail);
}
