/*
 * What run workers see of engines (engine.load): each says what its own rollouts hold there, and
 * the sums are kept with the engines. A load report replaces the worker's earlier one of that engine,
 * so one that is lost is made good by the next; a worker's reports go with it.
 *
 * An engine that says how full its cache is gets a limit by it: fewer runs when it is nearly
 * full, in proportion; more, one step at a time, while it is not.
 */
#include "broker/core/state.h"

#include <stdlib.h>

/* ---- one worker's ------------------------------------------------------------------ */

static void take_back(struct load_report *sum, const struct load_report *load)
{
    sum->runs -= load->runs;
    sum->tokens -= load->tokens;
    sum->calls -= load->calls;
}

static void add_up(struct load_report *sum, const struct load_report *load)
{
    sum->runs += load->runs;
    sum->tokens += load->tokens;
    sum->calls += load->calls;
}

static bool is_nothing(const struct load_report *load)
{
    return !load->runs && !load->tokens && !load->calls;
}

static struct load_report *find(struct worker *worker, const struct engine *engine)
{
    for (size_t i = 0; i < worker->load_count; i++)
        if (worker->loads[i].engine == engine)
            return &worker->loads[i];
    return NULL;
}

/* NULL when out of memory. */
static struct load_report *add(struct core *core, struct worker *worker, struct engine *engine)
{
    if (worker->load_count == worker->load_capacity) {
        size_t capacity = worker->load_capacity ? 2 * worker->load_capacity : 8;
        struct load_report *more = realloc(worker->loads, capacity * sizeof(*more));
        if (!more) {
            core->failed = true;
            return NULL;
        }
        worker->loads = more;
        worker->load_capacity = capacity;
    }
    struct load_report *load = &worker->loads[worker->load_count++];
    *load = (struct load_report){.engine = engine};
    return load;
}

static void drop(struct worker *worker, struct load_report *load)
{
    take_back(&load->engine->seen, load);
    *load = worker->loads[--worker->load_count];
}

void load_forget_worker(struct worker *worker)
{
    while (worker->load_count)
        drop(worker, &worker->loads[worker->load_count - 1]);
    free(worker->loads);
    worker->loads = NULL;
    worker->load_capacity = 0;
}

void load_forget_engine(struct core *core, const struct engine *engine)
{
    struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        struct load_report *load = find(worker, engine);
        if (load)
            drop(worker, load);
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

/* ---- engine.load ------------------------------------------------------------------ */

/* In the place of what the worker said before; who holds nothing there is not remembered. */
static void replace(struct core *core, struct worker *worker, const struct load_report *now)
{
    struct load_report *load = find(worker, now->engine);
    if (!load && !is_nothing(now))
        load = add(core, worker, now->engine);
    if (!load)
        return;
    take_back(&now->engine->seen, load);
    *load = *now;
    add_up(&now->engine->seen, load);
    if (is_nothing(load))
        drop(worker, load);
}

void handle_engine_load(struct core *core, const struct call *call)
{
    const struct msg_engine_load *in = call->in;
    struct worker *worker;
    struct engine *engine = engine_find(core, in->url);
    if (!worker_speaks(core, call, in->worker, &worker) || !worker || worker->stage != STAGE_RUN || !engine)
        return; /* of a worker not registered yet, or an engine that is no more */
    replace(core, worker, &(struct load_report){engine, in->runs, in->tokens, in->calls});
    engine_identify(core, engine, in->tokenizer_digest, in->template_digest);
    probes_take(core, engine, in);
    if (in->has_cache_permille) {
        adapt(core, engine, (uint32_t)in->cache_permille);
        migration_judge(core, engine);
    }
}

static struct load_report add_all(const struct core *core, const struct engine *engine)
{
    struct load_report sum = {0};
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link)
        for (size_t i = 0; i < worker->load_count; i++)
            if (worker->loads[i].engine == engine)
                add_up(&sum, &worker->loads[i]);
    return sum;
}

const char *load_check(const struct core *core)
{
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link) {
        struct load_report sum = add_all(core, engine);
        if (sum.runs != engine->seen.runs || sum.tokens != engine->seen.tokens ||
            sum.calls != engine->seen.calls)
            return "what workers see of an engine is counted wrong";
    }
    return NULL;
}
