/*
 * What run workers see of engines (engine.load): each says what its own rollouts hold there, and
 * the sums are kept with the engines. A load report replaces the worker's earlier one of that engine,
 * so one that is lost is made good by the next; a worker's reports go with it.
 *
 * An engine that says how full its cache is gets a limit by it: fewer runs when it is nearly
 * full, in proportion; more, one step at a time, while it is not.
 */
#include "broker/core/workers/engine_load.h"
#include "broker/core/engines/probes.h"
#include "broker/core/engines/load_sums.h"
#include "broker/core/engines/policies.h"
#include "broker/core/state/state.h"
#include "broker/core/workers/migration.h"
#include "broker/core/workers/worker_ids.h"

#include <stdlib.h>

/* ---- room by the engine's own word -------------------------------------------------- */

static uint64_t at_least_1(uint64_t n) { return n ? n : 1; }

static void set_room(struct core *core, struct engine *engine, uint64_t room)
{
    engine->room = (uint32_t)(room < UINT32_MAX ? room : UINT32_MAX);
    engine->room_ms = core->now_ms;
}

/* Less by a factor, more by a step: so that engines that compete for rollouts come to rest. */
static void adapt(struct core *core, struct engine *engine, uint32_t permille)
{
    engine->cache_permille = permille;
    engine->has_cache = true;
    if (engine->room_ms && core->now_ms - engine->room_ms < ROOM_PERIOD_MS)
        return;
    if (permille > ROOM_FULL_PERMILLE && engine->live)
        set_room(core, engine, at_least_1(engine->live * ROOM_GOAL_PERMILLE / permille));
    else if (permille < ROOM_FREE_PERMILLE && engine->room && engine->live >= engine->room) {
        set_room(core, engine, engine->room + at_least_1(engine->room / 16));
        engine_note(core, engine, ENGINE_CAPACITY);
    }
}

/* ---- engine.load ------------------------------------------------------------------ */

void handle_engine_load(struct core *core, const struct call *call)
{
    const struct msg_engine_load *in = call->in;
    struct worker *worker;
    struct engine *engine = engine_find(core, in->url);
    if (!worker_speaks(core, call, in->worker, &worker) || !worker || !worker->calls_engines || !engine)
        return; /* of a worker not registered yet, or an engine that is no more */
    load_replace(core, worker, &(struct load_report){engine, in->runs, in->tokens, in->calls});
    engine_identify(core, engine, in->tokenizer_digest, in->template_digest);
    probes_take(core, engine, in);
    if (in->has_cache_permille) {
        adapt(core, engine, (uint32_t)in->cache_permille);
        migration_judge(core, engine);
    }
}
