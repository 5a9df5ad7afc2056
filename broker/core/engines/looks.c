/*
 * Looks: how engines are that nobody has called of late. The core calls nobody, so that a run worker is
 * asked as it beats (lane.look) and answers with what it sees (engine.sight). Each engine is looked at
 * once in look_ms, however many workers there are; what is due goes to whoever beats next.
 *
 * An engine that leaves LOOKS_SILENT looks in a row without an answer is silent: no run is placed there
 * until it answers one. The second of them follows soon, of another worker where there is one: the one
 * that had no answer has just beaten.
 * That it answers again counts as a start: what its breaker knew was of before. Faults of calls
 * are the breaker's alone: an engine that fails at them and says that it is well stays set aside.
 */
#include "broker/core/state.h"

#include <stdio.h>

enum { AGAIN_MS = 100 };

bool engine_is_silent(const struct engine *engine) { return engine->look.unanswered >= LOOKS_SILENT; }

static bool is_watched(const struct core *core, const struct engine *engine)
{
    return core->settings.look_ms && engine->registered && !engine_is_paused(engine);
}

static void set_due(struct core *core, struct engine *engine, int64_t due_ms)
{
    if (!heap_put(&core->looks, &engine->look.timer, due_ms))
        core->failed = true;
}

void looks_refresh(struct core *core, struct engine *engine)
{
    if (!is_watched(core, engine)) {
        heap_remove(&core->looks, &engine->look.timer);
        engine->look = (struct look){0};
    } else if (!engine->look.timer.place) {
        set_due(core, engine, core->now_ms);
    }
}

void looks_ask(struct core *core, const struct worker *worker)
{
    struct heap_node *first;
    for (unsigned count = 0; count < LOOKS_A_BEAT && worker->stage == STAGE_RUN; count++) {
        if (!(first = heap_peek(&core->looks)) || first->key > core->now_ms)
            return;
        struct engine *engine = container_of(first, struct engine, look.timer);
        struct msg_lane_look in = {.url = engine_url(engine)};
        send_worker(core, worker, MSG_lane_look, &in);
        set_due(core, engine, core->now_ms + core->settings.look_ms);
    }
}

/* ---- answers ----------------------------------------------------------------------- */

void engine_works(struct core *core, struct engine *engine)
{
    bool was_silent = engine_is_silent(engine);
    engine->look.unanswered = 0;
    engine->look.error[0] = '\0';
    breaker_close(core, &engine->breaker);
    if (was_silent)
        dispatch_unpark(core, SIZE_MAX);
}

static void note_silence(struct core *core, struct engine *engine, struct slice error)
{
    struct look *look = &engine->look;
    snprintf(look->error, sizeof(look->error), "%.*s", SLICE_ARG(error));
    if (look->unanswered == LOOKS_SILENT)
        return;
    look->unanswered++;
    if (engine_is_silent(engine))
        core->counters.silences++;
    else
        set_due(core, engine,
                core->now_ms + (core->settings.look_ms < AGAIN_MS ? core->settings.look_ms : AGAIN_MS));
}

void looks_take(struct core *core, struct engine *engine, const struct msg_engine_sight *in)
{
    if (!in->has_answers || !is_watched(core, engine))
        return;
    if (in->answers && !engine->was_met) {
        bool was_unmet = engine_is_unmet(core, engine);
        engine->was_met = true;
        if (was_unmet)
            dispatch_unpark(core, SIZE_MAX);
    }
    if (!in->answers)
        note_silence(core, engine, in->error);
    else if (engine_is_silent(engine))
        engine_works(core, engine);
    else
        engine->look.unanswered = 0;
}

const char *looks_check(const struct core *core)
{
    const struct engine *engine;
    size_t watched = 0;
    LIST_EACH(engine, &core->engines, link) {
        watched += is_watched(core, engine);
        if (is_watched(core, engine) != (engine->look.timer.place != 0))
            return "an engine is looked at that should not be, or is not and should";
        if (engine->look.unanswered && !is_watched(core, engine))
            return "an engine is silent that nobody looks at";
        if (engine->look.timer.place &&
            engine->look.timer.key > core->now_ms + core->settings.look_ms)
            return "an engine's next look is too far away";
    }
    return watched == core->looks.count && heap_is_sound(&core->looks)
               ? NULL : "the looks are not those of the engines";
}
