/* The images that live groups have, and those that have failed of late. */
#include "broker/core/engines/images.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

/* ---- life -------------------------------------------------------------------------- */

static void destroy(struct image *image)
{
    free(image->verdict);
    free(image);
}

static struct image *create(struct core *core, struct slice name)
{
    struct image *image = core_alloc(core, 1, sizeof(*image) + name.len + 1);
    if (!image)
        return NULL;
    memcpy(image->name, name.data, name.len);
    image->name_len = (uint32_t)name.len;
    image->round = 1;
    image->breaker.of_image = true;
    list_init(&image->idle);
    list_init(&image->failed);
    list_init(&image->working);
    list_init(&image->waiting.jobs);
    if (table_put(&core->images, image_name(image), image))
        return image;
    core->failed = true;
    free(image);
    return NULL;
}

static void forget(struct core *core, struct image *image)
{
    table_take(&core->images, image_name(image));
    breaker_reset(core, &image->breaker);
    list_remove(&image->idle);
    list_remove(&image->failed);
    list_remove(&image->working);
    destroy(image);
}

void image_join(struct core *core, struct group_work *work, struct slice name)
{
    struct image *image = name.len ? table_find(&core->images, name) : NULL;
    if (name.len && !image) {
        if (core->images.count >= IMAGES_MAX && !list_is_empty(&core->idle_images))
            forget(core, container_of(core->idle_images.next, struct image, idle));
        image = core->images.count < IMAGES_MAX ? create(core, name) : NULL;
    }
    if (!image)
        return;
    list_remove(&image->idle);
    image->groups++;
    work->image = image;
}

void image_part(struct core *core, struct group_work *work)
{
    struct image *image = work->image;
    work->image = NULL;
    if (!image || --image->groups > 0)
        return;
    if (image->breaker.faults)
        list_push_back(&core->idle_images, &image->idle);
    else
        forget(core, image);
}

void images_finish(struct core *core)
{
    size_t at = 0;
    for (struct image *image; (image = table_next(&core->images, &at));)
        destroy(image);
    table_finish(&core->images);
}

/* ---- health ------------------------------------------------------------------------ */

void image_works(struct core *core, struct image *image)
{
    if (!image || !image->breaker.faults)
        return;
    image->round++;
    if (breaker_close(core, &image->breaker) && list_is_empty(&image->working))
        list_push_back(&core->working_images, &image->working);
}

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
    enum breaker_news news = breaker_fault(core, &image->breaker, job->token, failure->detail);
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
    return breaker_fault(core, &engine->breaker, job->token, why) != BREAKER_COUNTED && !is_same;
}

bool job_blames(struct core *core, struct job *job, const struct failure *failure)
{
    struct engine *engine = job_engine(job);
    if (failure->fault == FAULT_IMAGE && job->stage == STAGE_INIT)
        return blames_image(core, job, failure);
    if (failure->fault == FAULT_ENGINE && failure->outcome == OUTCOME_INFRA && engine && engine->registered)
        return blames_engine(core, job, engine, failure->detail);
    return false;
}
