/*
 * Jobs that wait for an engine, an image or a worker that offers what they need, and how they are queued again: all,
 * those of a policy or of an image, or one by one while a breaker awaits its trial. What waits for an image that is set
 * aside for good ends.
 */
#include "broker/core/queue/blocked.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/needs/lines.h"
#include "broker/core/needs/needs.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

/* So many of a stage's that wait for a policy's engines, in their order; false: there is none. */
static bool release_of(struct core *core, enum stage stage, const struct policy *policy, size_t most)
{
    enum { SOME_MAX = 64 };
    struct queue *blocked = &core->queues[PLACE_BLOCKED][stage];
    struct job *jobs[SOME_MAX];
    size_t count = 0;
    for (struct list *at = blocked->jobs.next; at != &blocked->jobs && count < most && count < SOME_MAX;
         at = at->next) {
        struct job *job = container_of(at, struct job, link);
        if (job_policy(job) == policy)
            jobs[count++] = job;
    }
    for (size_t i = count; i-- > 0;)
        job_queue(core, jobs[i], true);
    return count > 0;
}

void blocked_release(struct core *core)
{
    for (enum stage stage = STAGE_RUN; stage < STAGE_COUNT; stage++) {
        struct queue *blocked = &core->queues[PLACE_BLOCKED][stage];
        while (blocked->count)
            job_queue(core, container_of(blocked->jobs.prev, struct job, link), true);
    }
}

void blocked_release_capacity(struct core *core, const struct engine *engine)
{
    struct policy *policy = engine->policy;
    if (!policy || !policy->is_waited)
        return;
    policy->is_waited = false; /* all of them, so that turns and priorities count among them */
    for (enum stage stage = STAGE_RUN; stage < STAGE_COUNT; stage++)
        policy->is_waited |= release_of(core, stage, policy, SIZE_MAX);
}

static void image_let_one(struct core *core, struct image *image)
{
    if (image->waiting.count)
        job_queue(core, container_of(image->waiting.jobs.next, struct job, link), true);
}

void blocked_release_image(struct core *core, struct image *image)
{
    while (image->waiting.count)
        job_queue(core, container_of(image->waiting.jobs.prev, struct job, link), true);
}

bool blocked_release_needs(struct core *core, enum stage stage)
{
    bool was_any = false;
    struct need *need;
    LIST_EACH(need, &core->waiting_needs[stage], link) {
        const uint64_t slots = need_free_slots(core, need);
        while (need->waiting && need->queued < slots && !core->failed) {
            job_queue(core, line_turn(need), true);
            was_any = true;
        }
    }
    return was_any;
}

static struct image *image_of(struct breaker *breaker) { return container_of(breaker, struct image, breaker); }

static void let_one(struct core *core, struct breaker *breaker)
{
    heap_remove(&core->breakers, &breaker->timer);
    if (!breaker->of_image) {
        const struct policy *policy = container_of(breaker, struct engine, breaker)->policy;
        if (!release_of(core, STAGE_RUN, policy, 1))
            release_of(core, STAGE_EVAL, policy, 1);
        breaker_await(core, breaker);
        return;
    }
    image_let_one(core, image_of(breaker));
    if (image_of(breaker)->waiting.count)
        breaker_await(core, breaker);
}

void breakers_tick(struct core *core)
{
    struct heap_node *first;
    while ((first = heap_peek(&core->breakers)) && first->key <= core->now_ms && !core->failed)
        let_one(core, container_of(first, struct breaker, timer));
}

/* The first group that is to end, or NULL. */
static struct group *next_of_failed(const struct image *image)
{
    if (!image->waiting.count)
        return NULL;
    struct job *job = container_of(image->waiting.jobs.next, struct job, link);
    return job->since_ms <= image->failed_ms ? job->group : NULL;
}

void images_tick(struct core *core)
{
    if (list_is_empty(&core->failed_images))
        return;
    struct image *image = container_of(core->failed_images.next, struct image, failed);
    struct slice detail = effect_copy(core, slice_from_str(image->verdict));
    struct group *group;
    uint64_t ended = 0;
    while (ended < SWEEP_SLICE && (group = next_of_failed(image))) {
        ended += group->work->live;
        group_end(core, group, &(struct ending){.outcome = OUTCOME_TASK, .detail = detail});
    }
    if (!next_of_failed(image))
        list_remove(&image->failed);
}
