#include "broker/core/engines/breaker.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "common/base/text.h"

#include <stdio.h>

/* ---- states ------------------------------------------------------------------------ */

enum breaker_state breaker_state(const struct core *core, const struct breaker *breaker)
{
    if (!breaker->wait_ms)
        return BREAKER_CLOSED;
    return breaker->trial || breaker->due_ms <= core->now_ms ? BREAKER_TRIAL : BREAKER_OPEN;
}

const char *breaker_state_word(enum breaker_state state)
{
    static const char *const words[] = {"healthy", "failing", "probing"};
    return words[state];
}

bool breaker_lets(const struct core *core, const struct breaker *breaker)
{
    return !breaker->wait_ms || (!breaker->trial && breaker->due_ms <= core->now_ms);
}

static void set_timer(struct core *core, struct breaker *breaker, int64_t due_ms)
{
    if (!heap_put(&core->breakers, &breaker->timer, due_ms))
        core->failed = true;
}

static void open_for(struct core *core, struct breaker *breaker, int64_t wait_ms)
{
    int64_t last_ms = core->settings.breaker_last_ms;
    breaker->wait_ms = wait_ms < last_ms ? wait_ms : last_ms;
    breaker->due_ms = core->now_ms + breaker->wait_ms;
    breaker->newest = fencing_token_newest(core);
    core->counters.breaks++;
    set_timer(core, breaker, breaker->due_ms);
}

static void tell(struct core *core, struct breaker *breaker, const char *news)
{
    effect_health(core,
                  &(struct core_health){.is_image = breaker->of_image,
                                        .news = news,
                                        .name = breaker->of_image
                                                    ? image_name(container_of(breaker, struct image, breaker))
                                                    : engine_url(container_of(breaker, struct engine, breaker)),
                                        .faults = breaker->faults,
                                        .retry_ms = (uint64_t)breaker->wait_ms},
                  slice_from_str(breaker->why));
}

static enum breaker_news count_fault(struct core *core, struct breaker *breaker, uint64_t token)
{
    breaker->faults += breaker->faults < UINT32_MAX;
    if (!breaker->wait_ms && breaker->faults < core->settings.breaker_faults)
        return BREAKER_COUNTED;
    if (!breaker->wait_ms) {
        open_for(core, breaker, core->settings.breaker_first_ms);
        return BREAKER_BROKE;
    }
    if (token <= breaker->newest || !breaker_lets(core, breaker))
        return BREAKER_LATE;
    open_for(core, breaker, 2 * breaker->wait_ms);
    return BREAKER_FAILED;
}

enum breaker_news breaker_fault(struct core *core, struct breaker *breaker, uint64_t token, struct slice why)
{
    const enum breaker_news news = count_fault(core, breaker, token);
    const struct slice fits = text_cut_slice(why, ERROR_MAX);
    snprintf(breaker->why, sizeof(breaker->why), "%.*s", SLICE_ARG(fits));
    if (news != BREAKER_LATE)
        tell(core, breaker, news == BREAKER_COUNTED ? "fault" : "failing");
    return news;
}

void breaker_reset(struct core *core, struct breaker *breaker)
{
    heap_remove(&core->breakers, &breaker->timer);
    *breaker = (struct breaker){.of_image = breaker->of_image};
}

bool breaker_close(struct core *core, struct breaker *breaker)
{
    bool was_open = breaker->wait_ms > 0;
    breaker_reset(core, breaker);
    if (was_open)
        tell(core, breaker, "healthy");
    return was_open;
}

/* ---- the trial --------------------------------------------------------------------- */

void breaker_enter(struct core *core, struct breaker *breaker, const struct job *job)
{
    if (!breaker || !breaker->wait_ms || !breaker_lets(core, breaker))
        return;
    breaker->trial = job;
    heap_remove(&core->breakers, &breaker->timer);
}

void breaker_leave(struct core *core, struct breaker *breaker, const struct job *job)
{
    if (!breaker || breaker->trial != job)
        return;
    breaker->trial = NULL;
    set_timer(core, breaker, core->now_ms); /* unless its result says more, the next one tries */
}

void breaker_await(struct core *core, struct breaker *breaker)
{
    if (breaker->wait_ms && !breaker->trial && !breaker->timer.place)
        set_timer(core, breaker, breaker->due_ms > core->now_ms ? breaker->due_ms : core->now_ms + TRIAL_PERIOD_MS);
}

/* ---- jobs and what they stand for -------------------------------------------------- */

struct breaker *job_breaker(struct job *job)
{
    struct engine *engine = job_engine(job);
    struct image *image = job->group->work->image;
    if (job->stage == STAGE_INIT)
        return image ? &image->breaker : NULL;
    return engine ? &engine->breaker : NULL;
}
