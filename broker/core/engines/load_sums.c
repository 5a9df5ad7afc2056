/*
 * What run workers hold on engines, each as it said last, and the sums of that. A worker's go with it.
 */
#include "broker/core/engines/load_sums.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

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

static bool is_nothing(const struct load_report *load) { return !load->runs && !load->tokens && !load->calls; }

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

void load_replace(struct core *core, struct worker *worker, const struct load_report *now)
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
        if (sum.runs != engine->seen.runs || sum.tokens != engine->seen.tokens || sum.calls != engine->seen.calls)
            return "what workers see of an engine is counted wrong";
    }
    return NULL;
}
