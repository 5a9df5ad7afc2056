#include "workers/stages/build/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"
#include "workers/stages/build/build_merge.h"
#include "workers/stages/build/build_room.h"
#include "workers/stages/build/copy_step.h"
#include "workers/stages/build/run_step.h"
#include "workers/stages/sandbox/base.h"

/* ---- keys ---------------------------------------------------------------------------------------------- */

static int next_key(struct build *build, const struct stage_step *step, char key[DIGEST_SIZE])
{
    static const char *const kinds[] = {"RUN", "COPY", "ADD", "WORKDIR"};
    struct digest *digest = digest_begin();
    if (!digest)
        return fail_memory(&build->fail);
    digest_add_text(digest, key);
    digest_add_text(digest, kinds[step->kind]);
    int code = 0;
    if (step->kind == STEP_RUN)
        run_step_add(build, step, digest);
    else if (step->kind == STEP_WORKDIR)
        digest_add_text(digest, step->destination);
    else
        code = copy_step_add(build, step, digest);
    if (code == 0)
        return digest_end(&digest, key) ? 0 : fail_memory(&build->fail);
    digest_drop(&digest);
    return code;
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

static int run_step(struct build *build, const struct stage_step *step, struct stage_sandbox *room)
{
    if (step->kind == STEP_WORKDIR)
        return 0; /* the sandbox made it */
    return step->kind == STEP_RUN ? run_step_run(build, step, room) : copy_step_run(build, step, room);
}

/* What a step is made on. */
struct making {
    struct build *build;
    const char *base;
    const struct stage_step *step;
    const struct parents *layers;
    struct stage_sandbox *room;
};

/* What it changed, as a layer of the builds' store; its digest is "" where that is nothing. */
static int make_layer(void *arg, char ret[DIGEST_SIZE])
{
    const struct making *making = arg;
    struct build *build = making->build;
    struct stage_sandbox *room = making->room;
    struct layer layer = {0};
    int code = build_open_room(build, making->base, making->layers, &making->step->environment, room);
    if (code == -EINVAL || code == -ENOEXEC)
        return build_refuse(build, making->step, "%s", build->fail.text);
    if (code == 0)
        code = run_step(build, making->step, room);
    if (code == 0)
        code = sandbox_confirm(room->sandbox, &build->fail);
    if (code == 0) {
        code = layer_pack(&build->store.layers, room->sandbox, &layer, &build->fail);
        room->fault = layer.fault;
    }
    if (code == -ENAMETOOLONG || code == -EFBIG)
        code = build_refuse(build, making->step, "its files cannot be kept: %s", build->fail.text);
    snprintf(ret, DIGEST_SIZE, "%s", code == 0 ? layer.digest : "");
    layer_finish(&layer);
    return code;
}

static int take_step(struct build *build, size_t stage, const struct stage_step *step, struct stage_sandbox *room)
{
    struct built_stage *built = &build->built[stage];
    const char *base = base_of(&build->stages, stage);
    char layer[DIGEST_SIZE];
    int code = next_key(build, step, built->key);
    struct making making = {build, base, step, &built->layers, room};
    if (code == 0)
        code = build_store_get(&build->store, built->key, build->until_ms, make_layer, &making, layer, &build->fail);
    if (code < 0 || layer[0] == '\0')
        return code < 0 ? code : 0;
    if (built->layers.count == PARENTS_MAX && (code = build_merge(build, base, step, &built->layers, &room->fault)) < 0)
        return code;
    memcpy(built->layers.each[built->layers.count++], layer, DIGEST_SIZE);
    return 0;
}

static int build_stage(struct build *build, size_t at, struct stage_sandbox *room)
{
    const struct build_stage *stage = &build->stages.each[at];
    int code = 0;
    if (stage->base_stage >= 0)
        build->built[at] = build->built[stage->base_stage];
    else
        code = build_base_key(build, stage->base, build->built[at].key);
    for (size_t i = 0; i < stage->step_count && code == 0; i++) {
        code = take_step(build, at, &stage->steps[i], room);
        if (code == 0)
            stage_sandbox_close(room);
    }
    return code;
}

/* ---- the whole --------------------------------------------------------------------------------------------- */

static int build_all(struct build *build, struct stage_sandbox *room)
{
    int code = base_read(build->job, &build->of, &build->stages, &build->fail);
    if (code == 0)
        code = build_store_open(&build->job->context->layers, &build->store, &build->fail);
    if (code == 0)
        code = build_context_open(build->job, build->of.build, &build->context, &build->fail);
    for (size_t i = 0; i < build->stages.count && code == 0; i++)
        if (build->stages.each[i].is_needed)
            code = build_stage(build, i, room);
    return code;
}

/* Which of the two it is. */
static const char *said_first(const struct build *build)
{
    return build->of.build == &build->job->task->eval_build ? "eval.build: " : "";
}

bool build_run(struct job *job, struct task_base of, struct parents *ret)
{
    struct stage_sandbox room = {.image = {.lock = -1}};
    struct build *build = calloc(1, sizeof(*build));
    ret->count = 0;
    if (!build) {
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
        return false;
    }
    build->job = job;
    build->of = of;
    build->context.root = -1;
    build->until_ms = loop_now_ms() + (int64_t)of.build->timeout_s * 1000;
    int code = build_all(build, &room);
    if (code == 0)
        *ret = build->built[build->stages.target].layers;
    else if (build->refusal[0])
        job_set_outcome(job, OUTCOME_TASK, "%s%s", said_first(build), build->refusal);
    else
        stage_end_failed(job, &room, BLAME_TASK, code, &build->fail);
    stage_sandbox_close(&room);
    build_context_close(&build->context);
    build_store_close(&build->store);
    build_stages_finish(&build->stages);
    free(build);
    return code == 0;
}
