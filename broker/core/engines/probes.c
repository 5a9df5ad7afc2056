/*
 * Health probes: how engines are that nobody has called of late. The core calls nobody, so that a run worker is
 * asked as it beats (engine.probe) and answers with what it sees (engine.load). Each engine is probed
 * once in engine_probe_interval_ms, however many workers there are; what is due goes to whoever beats next.
 *
 * An engine that leaves PROBES_SILENT probes in a row without an answer is silent: no run is placed there
 * until it answers one. The second of them follows soon, of another worker where there is one: the one
 * that had no answer has just beaten.
 * That it answers again counts as a start: what its breaker knew was of before. Faults of calls
 * are the breaker's alone: an engine that fails at them and says that it is well stays set aside.
 */
#include "broker/core/engines/probes.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/identity.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>

enum { AGAIN_MS = 100 };

static bool is_watched(const struct core *core, const struct engine *engine)
{
    return core->settings.engine_probe_interval_ms && engine->registered && !engine_is_paused(engine);
}

static void set_due(struct core *core, struct engine *engine, int64_t due_ms)
{
    if (!heap_put(&core->probes, &engine->probe.timer, due_ms))
        core->failed = true;
}

void probes_refresh(struct core *core, struct engine *engine)
{
    if (!is_watched(core, engine)) {
        heap_remove(&core->probes, &engine->probe.timer);
        engine->probe = (struct probe){0};
    } else if (!engine->probe.timer.place) {
        set_due(core, engine, core->now_ms);
    }
}

void probes_ask(struct core *core, const struct worker *worker)
{
    struct heap_node *first;
    for (unsigned count = 0; count < PROBES_A_BEAT && worker->stage == STAGE_RUN; count++) {
        if (!(first = heap_peek(&core->probes)) || first->key > core->now_ms)
            return;
        struct engine *engine = container_of(first, struct engine, probe.timer);
        struct msg_engine_probe in = {.url = engine_url(engine)};
        send_worker(core, worker, MSG_engine_probe, &in);
        set_due(core, engine, core->now_ms + core->settings.engine_probe_interval_ms);
    }
}

/* ---- answers ----------------------------------------------------------------------- */

static void tell(struct core *core, const struct engine *engine, const char *news)
{
    effect_health(core, &(struct core_health){.news = news, .name = engine_url(engine)},
                  slice_from_str(engine->probe.error));
}

void engine_works(struct core *core, struct engine *engine)
{
    bool was_silent = engine_is_silent(engine);
    engine->probe.unanswered = 0;
    engine->probe.error[0] = '\0';
    bool was_open = breaker_close(core, &engine->breaker);
    if (was_silent && !was_open)
        tell(core, engine, "healthy");
    if (was_silent || was_open)
        engine_note(core, engine, ENGINE_READY);
}

static void note_silence(struct core *core, struct engine *engine, struct slice error)
{
    struct probe *probe = &engine->probe;
    counting_engine_error(engine, ENGINE_ERROR_PROBE);
    snprintf(probe->error, sizeof(probe->error), "%.*s", SLICE_ARG(error));
    if (probe->unanswered == PROBES_SILENT)
        return;
    probe->unanswered++;
    if (engine_is_silent(engine)) {
        core->counters.silences++;
        tell(core, engine, "silent");
    } else {
        set_due(core, engine,
                core->now_ms + (core->settings.engine_probe_interval_ms < AGAIN_MS
                                    ? core->settings.engine_probe_interval_ms
                                    : AGAIN_MS));
    }
}

void probes_take(struct core *core, struct engine *engine, const struct msg_engine_load *in)
{
    if (!in->has_answers || !is_watched(core, engine))
        return;
    if (in->answers && !engine->has_answered) {
        bool was_unprobed = engine_is_unprobed(core, engine);
        engine->has_answered = true;
        if (was_unprobed)
            engine_note(core, engine, ENGINE_READY);
    }
    if (!in->answers)
        note_silence(core, engine, in->error);
    else if (engine_is_silent(engine))
        engine_works(core, engine);
    else
        engine->probe.unanswered = 0;
}

const char *probes_check(const struct core *core)
{
    const struct engine *engine;
    size_t watched = 0;
    LIST_EACH(engine, &core->engines, link) {
        watched += is_watched(core, engine);
        if (is_watched(core, engine) != (engine->probe.timer.place != 0))
            return "an engine is probed that should not be, or is not and should";
        if (engine->probe.unanswered && !is_watched(core, engine))
            return "an engine is silent that nobody probes";
        if (engine->probe.timer.place &&
            engine->probe.timer.key > core->now_ms + core->settings.engine_probe_interval_ms)
            return "an engine's next probe is too far away";
    }
    return watched == core->probes.count && heap_is_sound(&core->probes) ? NULL
                                                                         : "the probes are not those of the engines";
}
