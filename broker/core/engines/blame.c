/* Whether a failure is an engine's or an image's, and not the job's that reports it. */
#include "broker/core/engines/blame.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

/* Its trial says that it is bad: what waits for it now ends, by and by. */
static void set_failed(struct core *core, struct image *image, struct slice words)
{
    struct slice verdict = effect_print(core, "the image %.*s was set aside after %u faults in a row; the last: %.*s",
                                        SLICE_ARG(image_name(image)), image->breaker.faults, SLICE_ARG(words));
    free(image->verdict);
    image->verdict = core_strdup(core, verdict);
    image->failed_ms = core->now_ms;
    list_remove(&image->failed);
    list_push_back(&core->failed_images, &image->failed);
}

static bool blames_image(struct core *core, struct job *job, const struct failure *failure)
{
    struct group_work *work = job->group->work;
    struct image *image = work->image;
    if (!image)
        return false;
    bool is_known = work->image_round == image->round && !image->breaker.wait_ms;
    work->image_round = image->round;
    if (is_known)
        return false;
    enum breaker_news news = breaker_fault(core, &image->breaker, job->course->token, failure->detail);
    if (news == BREAKER_FAILED && failure->outcome == OUTCOME_TASK)
        set_failed(core, image, failure->detail);
    return news != BREAKER_COUNTED;
}

/*
 * A rollout that fails there twice running, with nobody else between, may itself be what breaks
 * the engine: it is not left uncounted, so that its own budget ends it.
 */
static bool blames_engine(struct core *core, const struct job *job, struct engine *engine, struct slice why)
{
    uint64_t blamer = job->group->work->serial << 10 | job->sample;
    bool is_same = engine->blamer == blamer;
    engine->blamer = blamer;
    counting_engine_error(engine, ENGINE_ERROR_CALL);
    return breaker_fault(core, &engine->breaker, job->course->token, why) != BREAKER_COUNTED && !is_same;
}

bool blame_failure(struct core *core, struct job *job, const struct failure *failure)
{
    struct engine *engine = job_engine(job);
    if (failure->fault == FAULT_IMAGE && job->stage == STAGE_INIT)
        return blames_image(core, job, failure);
    if (failure->fault == FAULT_ENGINE && failure->outcome == OUTCOME_INFRA && engine && engine->registered)
        return blames_engine(core, job, engine, failure->detail);
    return false;
}
