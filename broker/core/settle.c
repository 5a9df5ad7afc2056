/*
 * What was found in a step and changes what others may do is noted where it is found, on the sampler, the engine or
 * the image that it was found of; what follows is done here, once, at the step's end, in this order:
 *   groups of samplers have ended, or more of them are wanted: they are judged, told, released and let go;
 *   an engine serves something else than its policy: its jobs are taken away, and begin again elsewhere;
 *   an image works: the init jobs that wait for it are queued;
 *   an engine has capacity again, or may be given jobs again: those that wait for one are queued.
 * Each feeds only those after it, so that one pass is enough.
 */
#include "broker/core/settle.h"
#include "broker/core/queue/blocked.h"
#include "broker/core/queue/failures.h"
#include "broker/core/sampler/sampling.h"
#include "broker/core/state/state.h"

/* What runs there begins again on another engine, and has used up nothing. */
static void evict_runs(struct core *core, const struct engine *engine)
{
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        struct list *at = worker->jobs.jobs.next, *next;
        for (; at != &worker->jobs.jobs; at = next) {
            struct job *job = container_of(at, struct job, link);
            next = at->next;
            if (job_engine(job) == engine)
                job_evict(core, job);
        }
    }
}

static void settle_differences(struct core *core)
{
    const struct engine *engine;
    LIST_EACH(engine, &core->noted_engines, noted)
        if (engine->notes & ENGINE_DIFFERS && engine->is_other)
            evict_runs(core, engine);
}

static void settle_images(struct core *core)
{
    while (!list_is_empty(&core->working_images)) {
        struct image *image = container_of(core->working_images.next, struct image, working);
        list_remove(&image->working);
        blocked_release_image(core, image);
    }
}

static void settle_capacity(struct core *core)
{
    unsigned notes = 0;
    while (!list_is_empty(&core->noted_engines)) {
        struct engine *engine = container_of(core->noted_engines.next, struct engine, noted);
        if (engine->notes & ENGINE_CAPACITY)
            blocked_release_capacity(core, engine);
        notes |= engine->notes;
        engine->notes = 0;
        list_remove(&engine->noted);
    }
    if (notes & ENGINE_READY)
        blocked_release(core);
}

void settle(struct core *core)
{
    samplers_settle(core);
    settle_differences(core);
    settle_images(core);
    settle_capacity(core);
}
