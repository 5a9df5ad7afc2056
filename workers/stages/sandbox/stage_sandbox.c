#include "workers/stages/sandbox/stage_sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/digest/digest.h"
#include "schemas/limits.h"
#include "workers/agents/harnesses/harness_dirs.h"
#include "workers/runtime/fiber.h"
#include "workers/network/forward.h"
#include "workers/stages/sandbox/artifacts.h"
#include "workers/stages/sandbox/base.h"
#include "workers/stages/sandbox/stage_environment.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/offload.h"
#include "workers/runtime/spent.h"

enum { COMMAND_RESERVE_MS = 500 };

/* ---- layers and sandbox ------------------------------------------------------------------- */

/* Whether the evaluator's sandbox has the image's programs, whatever the agent left (eval.trust). */
static bool trusts_image(const struct stage_sandbox *stage, const struct job *job)
{
    return stage->part == STAGE_EVALUATORS && strcmp(job->task->eval_trust, "image") == 0;
}

static int add_layer(struct stage_sandbox *stage, const struct job *job, struct slice digest, struct slice inlined,
                     const struct layer_part *part, bool keep, struct fail *fail)
{
    char name[DIGEST_SIZE + 1];
    if (digest.len == 0)
        return 0;
    snprintf(name, sizeof(name), "%.*s", SLICE_ARG(digest));
    int code = layer_dir_hold_part(&job->context->layers, name, inlined, part, &stage->layers[stage->layer_count],
                                   fail);
    if (code < 0)
        stage->fault = layer_fault(code);
    if (code < 0)
        return code == -EINVAL ? fail_set(fail, -EBADMSG, "%s is not a digest", name) : code;
    stage->keeps[stage->layer_count++] = keep;
    return 0;
}

int stage_sandbox_add_parents(struct stage_sandbox *stage, const struct job *job, const struct parents *parents,
                              struct fail *fail)
{
    struct layers layers;
    AUTO_FREE char *store = NULL;
    int code = parents_layers(&job->context->layers, &layers, &store, fail);
    for (size_t i = 0; i < parents->count && code == 0; i++) {
        code = layer_dir_hold(&layers, parents->each[i], (struct slice){0}, &stage->layers[stage->layer_count], fail);
        if (code < 0)
            stage->fault = layer_fault(code);
        else
            stage->keeps[stage->layer_count++] = true;
    }
    return code;
}

struct below { /* for the thread that reads it */
    const char *root;
    struct parents *into;
    struct fail *fail;
};

static int read_parents(void *arg, const atomic_bool *stop)
{
    const struct below *below = arg;
    (void)stop;
    return parents_read(below->root, below->into, below->fail);
}

/* The init layer, which is the last so far, says what it stands on; it comes to lie over that. */
static int add_below(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    struct layer_dir init = stage->layers[--stage->layer_count];
    AUTO_FREE struct parents *parents = calloc(1, sizeof(*parents));
    struct below below = {init.path, parents, fail};
    int code = parents ? offload_run(read_parents, &below, fail) : fail_memory(fail);
    if (code < 0)
        stage->fault = FAULT_STORE;
    else
        code = stage_sandbox_add_parents(stage, job, parents, fail);
    stage->layers[stage->layer_count] = init;
    stage->keeps[stage->layer_count++] = true;
    return code;
}

static int add_init(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    return add_layer(stage, job, job->start.init_layer_digest, job->start.init_layer, &(struct layer_part){0}, true,
                     fail);
}

int stage_sandbox_add_init(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    const size_t before = stage->layer_count;
    int code = add_init(stage, job, fail);
    return code == 0 && job->task->build.dockerfile && stage->layer_count > before ? add_below(stage, job, fail) : code;
}

int stage_sandbox_add_own(struct stage_sandbox *stage, const struct job *job, const char **ret_path, struct fail *fail)
{
    int code = layer_dir_make(job->context->layers.cache, &stage->layers[stage->layer_count], fail);
    if (code < 0) {
        stage->fault = FAULT_NODE;
        return code;
    }
    stage->keeps[stage->layer_count] = false;
    *ret_path = stage->layers[stage->layer_count++].path;
    return 0;
}

/* ---- what it may reach -------------------------------------------------------------------- */

struct reach {
    const struct grant *grants[TASK_GRANTS_MAX];
    struct listener listeners[TASK_GRANTS_MAX + 1]; /* the last for the model of a harness, if there is one */
    size_t count;
};

/* Set-up's are those of network where the task says nothing of its own. */
static size_t list_grants(const struct stage_sandbox *stage, const struct task *task, const char ***ret)
{
    const enum stage_part part = stage->part;
    if (part == STAGE_BUILDS)
        return *ret = stage->build->grants.each, stage->build->grants.count;
    const bool is_setups = part == STAGE_SETUPS && task->init_grants;
    *ret = part == STAGE_EVALUATORS ? task->eval_grants : is_setups ? task->init_grants : task->grants;
    return part == STAGE_EVALUATORS ? task->eval_grant_count : is_setups ? task->init_grant_count : task->grant_count;
}

static int find_grants(const struct stage_sandbox *stage, const struct job *job, struct reach *ret, struct fail *fail)
{
    const char **names;
    const size_t count = list_grants(stage, job->task, &names);
    for (ret->count = 0; ret->count < count; ret->count++) {
        const char *name = names[ret->count];
        const struct grant *grant = grants_find(job->context->grants, name);
        if (!grant) {
            char known[256];
            grants_format(job->context->grants, known, sizeof(known));
            return fail_set(fail, -EINVAL, "there is no network grant \"%s\"; this worker has: %s", name, known);
        }
        struct listener *listener = &ret->listeners[ret->count];
        *listener = (struct listener){.is_tcp = grant->is_tcp, .port = grant->port};
        memcpy(listener->name, grant->name, sizeof(listener->name));
        ret->grants[ret->count] = grant;
    }
    return 0;
}

/* Behind those of the grants; how many there are. */
static size_t add_model(const struct stage_sandbox *stage, struct reach *reach)
{
    if (stage->has_model)
        reach->listeners[reach->count] = (struct listener){.is_tcp = true, .name = GRANT_MODEL};
    return reach->count + stage->has_model;
}

static int open_forwards(struct stage_sandbox *stage, const struct job *job, const struct reach *reach,
                         struct fail *fail)
{
    for (size_t i = 0; i < reach->count; i++) {
        struct forward *forward = forward_open(job->context->loop, sandbox_take_listener(stage->sandbox, i),
                                               reach->grants[i]);
        if (!forward)
            return fail_memory(fail);
        stage->forwards[stage->forward_count++] = forward;
    }
    return 0;
}

/* Not to be had as the task names it, or there and unreadable; else for want of something here. */
static enum fault image_fault(int code) { return code == -EINVAL || code == -ENOMEDIUM ? FAULT_IMAGE : FAULT_NODE; }

int stage_sandbox_find_image(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    if (stage->image.path)
        return 0;
    const bool is_evaluators = stage->part == STAGE_EVALUATORS;
    const struct task_base of = is_evaluators ? task_base_of_evaluator(job->task) : task_base_of_agent(job->task);
    int code = base_find(job, &of, &stage->image, fail);
    if (code < 0)
        stage->fault = image_fault(code);
    return code < 0 && is_evaluators && task_has_own_image(job->task) ? fail_wrap(fail, "the evaluator's image") : code;
}

/* ---- what the agent left ------------------------------------------------------------------------ */

static int add_run(struct stage_sandbox *stage, const struct job *job, const struct layer_part *part, struct fail *fail)
{
    return add_layer(stage, job, job->start.run_layer_digest, job->start.run_layer, part, false, fail);
}

int stage_sandbox_add_run(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    const char *roots[STAGE_LAYERS_MAX + 1];
    struct artifacts artifacts = {0};
    int code = 0;
    if (job->task->artifacts.each)
        code = artifacts_find(job->task, roots, stage_sandbox_roots(stage, roots), stage_agents_workdir(stage, job),
                              &artifacts, fail);
    const struct layer_part agents = {
        .is_plain = trusts_image(stage, job), .places = artifacts.places, .place_count = artifacts.count};
    if (code == 0)
        code = add_run(stage, job, &agents, fail);
    artifacts_finish(&artifacts);
    return code;
}

int stage_sandbox_add_all(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    return add_run(stage, job, &(struct layer_part){0}, fail);
}

int stage_sandbox_add_run_below(struct stage_sandbox *stage, const struct job *job, const char *path, struct fail *fail)
{
    return add_run(stage, job, &(struct layer_part){.below = path}, fail);
}

/* ---- opening ---------------------------------------------------------------------------------- */

static int check_devices(const struct task *task, struct fail *fail)
{
    if (task->limits.gpus == 0)
        return 0;
    return fail_set(fail, -EINVAL, "limits.gpus is %llu, and sandboxes have no devices of the machine",
                    (unsigned long long)task->limits.gpus);
}

/* Layers that are alike are one directory, such as those of RUNs that changed nothing. An overlay takes it once, and
 * below itself it adds nothing. */
static bool lies_above_too(const struct stage_sandbox *stage, size_t i)
{
    for (size_t k = i + 1; k < stage->layer_count; k++)
        if (strcmp(stage->layers[k].path, stage->layers[i].path) == 0)
            return true;
    return false;
}

static size_t list_layers(const struct stage_sandbox *stage, const char *ret[STAGE_LAYERS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < stage->layer_count; i++)
        if (!lies_above_too(stage, i))
            ret[count++] = stage->layers[i].path;
    return count;
}

/* Of those that the node has, the one at work in it. */
static const struct harness_dir *find_harness(const struct stage_sandbox *stage, const struct job *job)
{
    return stage->has_model ? harness_dirs_get(job->context->harness_dirs, job->task->agent_harness) : NULL;
}

static int open_with(struct stage_sandbox *stage, const struct job *job, struct reach *reach,
                     const struct environment *environment, struct fail *fail)
{
    const struct task *task = job->task;
    const char *layers[STAGE_LAYERS_MAX];
    const size_t layer_count = list_layers(stage, layers);
    const struct harness_dir *dir = find_harness(stage, job);
    const struct sandbox_harness harness = {dir ? dir->name : NULL, dir ? dir->path : NULL};
    struct sandbox_plan plan = {.image = stage->image.path,
                                .layers = layers,
                                .layer_count = layer_count,
                                .memory_mib = task->limits.memory_mib,
                                .disk_mib = task->limits.disk_mib,
                                .processes = task->limits.processes,
                                .inodes = task->limits.inodes,
                                .file_mib = task->limits.file_mib,
                                .cpus = task->limits.cpus,
                                .kernels = stage->kernels,
                                .is_sealed = trusts_image(stage, job),
                                .user = environment->has_user ? &environment->user : NULL,
                                .workdir = environment->workdir,
                                .variables = (const char *const *)environment->values.variables,
                                .variable_count = environment->values.variable_count,
                                .harness = dir ? &harness : NULL,
                                .listeners = reach->listeners,
                                .listener_count = add_model(stage, reach)};
    const int64_t began_us = clock_us();
    int code = sandbox_open(job->context->spawner, &plan, &stage->sandbox, fail);
    if (code < 0)
        stage->fault = image_fault(code);
    else
        spent_sandbox_start((double)(clock_us() - began_us) / 1e6);
    return code < 0 ? code : open_forwards(stage, job, reach, fail);
}

/* What a verifier, and the agent before it, finds writable from the start. */
static int make_logs(struct stage_sandbox *stage, const struct task *task, struct fail *fail)
{
    const char *const dirs[] = {"/logs/agent", "/logs/artifacts", task_reward_dir(task)};
    int code = 0;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && task_has_verifier(task) && code == 0; i++)
        code = sandbox_make_dir(stage->sandbox, dirs[i], 0777, fail);
    if (code == -EROFS || code == -EACCES || code == -EPERM) {
        fail_wrap(fail, "a task with a verifier needs the directory, and sandboxes of this worker's cannot have it");
        return fail->code = -ENOSYS;
    }
    return code;
}

int stage_sandbox_open(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    struct reach reach;
    struct environment environment = {0};
    int code = check_devices(job->task, fail);
    if (code == 0)
        code = find_grants(stage, job, &reach, fail);
    if (code == 0)
        code = stage_sandbox_find_image(stage, job, fail);
    if (code == 0)
        code = stage_sandbox_environment(stage, job, NULL, &environment, fail);
    if (code == 0)
        code = open_with(stage, job, &reach, &environment, fail);
    environment_finish(&environment);
    return code == 0 ? make_logs(stage, job->task, fail) : code;
}

int stage_sandbox_hand_over(struct stage_sandbox *stage, const struct job *job, enum stage_part to, struct fail *fail)
{
    struct environment environment = {0};
    stage->part = to;
    int code = stage_sandbox_environment(stage, job, NULL, &environment, fail);
    if (code == 0)
        code = sandbox_set_variables(stage->sandbox, (const char *const *)environment.values.variables,
                                     environment.values.variable_count, fail);
    environment_finish(&environment);
    return code;
}

int64_t stage_closing_by(struct stage_sandbox *stage)
{
    if (stage->closing_by_ms == 0)
        stage->closing_by_ms = loop_now_ms() + JOB_PACK_MS;
    return stage->closing_by_ms;
}

void stage_sandbox_close(struct stage_sandbox *stage)
{
    while (stage->forward_count > 0)
        forward_close(&stage->forwards[--stage->forward_count]);
    sandbox_close(&stage->sandbox);
    for (size_t i = 0; i < stage->layer_count; i++)
        if (stage->keeps[i])
            layer_dir_release(&stage->layers[i]);
        else
            layer_dir_discard(&stage->layers[i]);
    stage->layer_count = 0;
    image_hold_release(&stage->image);
}

/* ---- endings ------------------------------------------------------------------------------ */

/* What happens when the sandbox is killed for it. */
static void say_limit(struct job *job, struct blame blame, enum fault fault, enum blame_who who, const char *breach)
{
    static const char *const whose[] = {[BLAME_NOBODY] = "it",
                                        [BLAME_TASK] = "set-up",
                                        [BLAME_AGENT] = "the agent",
                                        [BLAME_EVALUATOR] = "the evaluator"};
    const enum limit_id id = limit_find(breach);
    job_set_fault(job, blame.outcome, fault, "%s went over its %s limit (%s)", whose[who], breach,
                  id < LIMIT_COUNT ? limit_get(id)->field : "limits");
}

void stage_end_failed(struct job *job, const struct stage_sandbox *stage, enum blame_who who, int code,
                      const struct fail *fail)
{
    if (!stage->sandbox)
        who = BLAME_NOBODY;
    const enum blame_what what = blame_what(code, stage->sandbox);
    const struct blame blame = blame_get(who, what);
    const bool is_sandboxes = stage->fault && (blame.outcome == OUTCOME_INFRA || what == BLAME_REQUEST);
    const enum fault fault = is_sandboxes ? stage->fault : blame.fault;
    if (what == BLAME_CANCEL)
        job_set_fault(job, blame.outcome, fault, "cancelled");
    else if (what == BLAME_LIMIT)
        say_limit(job, blame, fault, who, sandbox_breach(stage->sandbox));
    else if (what == BLAME_TIME)
        job_set_fault(job, blame.outcome, fault, "%s",
                      stage->sandbox ? "the time of the stage is up"
                                     : "no sandbox was ready within the time of the stage");
    else
        job_set_fault(job, blame.outcome, fault, "%s", fail->text);
}

int64_t stage_command_ms(uint64_t limit_s)
{
    int64_t limit_ms = (int64_t)limit_s * 1000, deadline_ms = fiber_deadline();
    if (deadline_ms == 0)
        return limit_ms;
    int64_t left_ms = deadline_ms - loop_now_ms() - COMMAND_RESERVE_MS;
    if (left_ms < 1)
        left_ms = 1;
    return left_ms < limit_ms ? left_ms : limit_ms;
}

const char *stage_output_tail(const struct sandbox_output *output, size_t max)
{
    if (output->len <= max)
        return output->text;
    const char *tail = output->text + output->len - max;
    const char *line = strchr(tail, '\n');
    return line && line[1] ? line + 1 : tail;
}

void stage_describe_end(const struct stage_sandbox *stage, const struct sandbox_output *output, char *text, size_t size)
{
    char limits[96];
    stage_describe_breaches(stage, limits, sizeof(limits));
    if (output->timed_out)
        snprintf(text, size, "was stopped after %.1f s%s", output->seconds, limits);
    else if (output->status >= 256)
        snprintf(text, size, "was killed by signal %d%s", output->status - 256, limits);
    else
        snprintf(text, size, "exited with %d%s", output->status, limits);
}

/* ---- what it used -------------------------------------------------------------------------- */

/* A command that was stopped and an output that was cut are told of as such. */
static bool is_worth_telling(const struct sandbox_usage *usage, unsigned limit)
{
    return usage->breaches[limit] > 0 && limit != LIMIT_COMMAND_TIME && limit != LIMIT_OUTPUT;
}

void stage_describe_breaches(const struct stage_sandbox *stage, char *text, size_t size)
{
    struct sandbox_usage usage;
    size_t len = 0;
    text[0] = '\0';
    if (!stage->sandbox)
        return;
    sandbox_get_usage(stage->sandbox, &usage);
    for (unsigned i = 0; i < LIMIT_COUNT && len < size; i++)
        if (is_worth_telling(&usage, i))
            len += (size_t)snprintf(text + len, size - len, "%s%s",
                                    len ? ", " : " (limits reached: ", limit_get((enum limit_id)i)->name);
    if (len > 0 && len < size)
        snprintf(text + len, size - len, ")");
}

bool stage_record_touched(const struct stage_sandbox *stage, struct record *record)
{
    const uint64_t count = stage->sandbox ? sandbox_touched(stage->sandbox) : 0;
    const char *what, *path;
    struct record_tamper *tamper = count ? record_add_tamper(record) : NULL;
    if (!tamper)
        return count == 0;
    tamper->count = count;
    for (size_t at = 0; sandbox_next_touched(stage->sandbox, &at, &what, &path);)
        if (!record_add_touched(tamper, what, path))
            return false;
    return true;
}

bool stage_record_usage(const struct stage_sandbox *stage, bool is_late, struct record *record)
{
    struct sandbox_usage usage;
    if (!stage->sandbox)
        return true;
    struct record_sandbox *into = record_add_sandbox(record);
    if (!into)
        return false;
    sandbox_get_usage(stage->sandbox, &usage);
    usage.breaches[LIMIT_STAGE_TIME] += is_late;
    into->peak_memory_kib = usage.peak_memory_kib;
    into->peak_processes = (uint32_t)usage.peak_processes;
    into->peak_disk_bytes = usage.peak_disk_bytes;
    into->peak_inodes = usage.peak_inodes;
    into->cpu_seconds = usage.cpu_seconds;
    into->commands = (uint32_t)usage.commands;
    into->timed_out = (uint32_t)usage.timed_out;
    into->output_bytes = usage.output_bytes;
    into->cut_bytes = usage.cut_bytes;
    for (unsigned i = 0; i < LIMIT_COUNT; i++)
        if (!record_add_breach(into, limit_get((enum limit_id)i)->name, usage.breaches[i]))
            return false;
    return true;
}
