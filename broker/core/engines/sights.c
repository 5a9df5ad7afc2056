/*
 * What run workers see of engines (engine.sight): each says what its own rollouts hold there, and
 * the sums are kept with the engines. A sight replaces the worker's earlier one of that engine,
 * so one that is lost is made good by the next; a worker's sights go with it.
 *
 * An engine that says how full its cache is gets a limit by it: fewer runs when it is nearly
 * full, in proportion; more, one step at a time, while it is not.
 */
#include "broker/core/state.h"

#include <stdlib.h>

/* ---- one worker's ------------------------------------------------------------------ */

static void take_back(struct sight *sum, const struct sight *sight)
{
    sum->runs -= sight->runs;
    sum->tokens -= sight->tokens;
    sum->calls -= sight->calls;
}

static void add_up(struct sight *sum, const struct sight *sight)
{
    sum->runs += sight->runs;
    sum->tokens += sight->tokens;
    sum->calls += sight->calls;
}

static bool is_nothing(const struct sight *sight)
{
    return !sight->runs && !sight->tokens && !sight->calls;
}

static struct sight *find(struct worker *worker, const struct engine *engine)
{
    for (size_t i = 0; i < worker->sight_count; i++)
        if (worker->sights[i].engine == engine)
            return &worker->sights[i];
    return NULL;
}

/* NULL when out of memory. */
static struct sight *add(struct core *core, struct worker *worker, struct engine *engine)
{
    if (worker->sight_count == worker->sight_capacity) {
        size_t capacity = worker->sight_capacity ? 2 * worker->sight_capacity : 8;
        struct sight *more = realloc(worker->sights, capacity * sizeof(*more));
        if (!more) {
            core->failed = true;
            return NULL;
        }
        worker->sights = more;
        worker->sight_capacity = capacity;
    }
    struct sight *sight = &worker->sights[worker->sight_count++];
    *sight = (struct sight){.engine = engine};
    return sight;
}

static void drop(struct worker *worker, struct sight *sight)
{
    take_back(&sight->engine->seen, sight);
    *sight = worker->sights[--worker->sight_count];
}

void sights_forget_worker(struct worker *worker)
{
    while (worker->sight_count)
        drop(worker, &worker->sights[worker->sight_count - 1]);
    free(worker->sights);
    worker->sights = NULL;
    worker->sight_capacity = 0;
}

void sights_forget_engine(struct core *core, const struct engine *engine)
{
    struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        struct sight *sight = find(worker, engine);
        if (sight)
            drop(worker, sight);
    }
}

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
        dispatch_room_came(core, engine);
    }
}

/* ---- engine.sight ------------------------------------------------------------------ */

/* In the place of what the worker said before; who holds nothing there is not remembered. */
static void replace(struct core *core, struct worker *worker, const struct sight *now)
{
    struct sight *sight = find(worker, now->engine);
    if (!sight && !is_nothing(now))
        sight = add(core, worker, now->engine);
    if (!sight)
        return;
    take_back(&now->engine->seen, sight);
    *sight = *now;
    add_up(&now->engine->seen, sight);
    if (is_nothing(sight))
        drop(worker, sight);
}

void handle_engine_sight(struct core *core, const struct call *call)
{
    const struct msg_engine_sight *in = call->in;
    struct worker *worker;
    struct engine *engine = engine_find(core, in->url);
    if (!worker_speaks(core, call, in->worker, &worker) || !worker || worker->stage != STAGE_RUN || !engine)
        return; /* of a worker not met yet, or an engine that is no more */
    replace(core, worker, &(struct sight){engine, in->runs, in->tokens, in->calls});
    engine_identify(core, engine, in->tokenizer_digest, in->template_digest);
    looks_take(core, engine, in);
    if (in->has_cache_permille) {
        adapt(core, engine, (uint32_t)in->cache_permille);
        moving_judge(core, engine);
    }
}

static struct sight add_all(const struct core *core, const struct engine *engine)
{
    struct sight sum = {0};
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link)
        for (size_t i = 0; i < worker->sight_count; i++)
            if (worker->sights[i].engine == engine)
                add_up(&sum, &worker->sights[i]);
    return sum;
}

const char *sights_check(const struct core *core)
{
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link) {
        struct sight sum = add_all(core, engine);
        if (sum.runs != engine->seen.runs || sum.tokens != engine->seen.tokens ||
            sum.calls != engine->seen.calls)
            return "what workers see of an engine is counted wrong";
    }
    return NULL;
}
