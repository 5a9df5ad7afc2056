/*
 * Which engine a rollout gets. Its calls all go there, so that each finds the context of the one
 * before in the engine's prefix cache.
 *
 * live-tokens: the engine whose rollouts have the least tokens in their contexts. Workers tell
 * of these once a second; a rollout that none has told of yet counts as much as a typical one.
 * Among equals two are drawn by lot, and the one with fewer runs is taken. An engine that the
 * rollout's group (or the rollout itself, before) is on already has its prompt in the cache and
 * goes before, unless it is AFFINITY_PERCENT above the mean.
 *
 * An evaluation that an engine judges is placed likewise, among the engines of the judges' policy: those of one group
 * have the beginning of their prompts in common.
 *
 * The others are for comparison: assignments counts what was given and never what ended, as
 * ProRL's heap does; hash is by the highest of the engines' weights for the rollout's name.
 */
#include "broker/core/engines/placing.h"
#include "broker/core/engines/engines.h"
#include "broker/core/state/state.h"
#include "common/base/prng.h"

struct candidate {
    struct engine *engine;
    uint64_t load;
};

/* The engines of a rollout's policy that have room, in the order they are known. */
struct open_engines {
    struct candidate items[ENGINES_MAX];
    size_t count;
    uint64_t mean;
};

/* ---- load -------------------------------------------------------------------------- */

uint64_t placing_typical(const struct core *core)
{
    const struct engine *engine;
    uint64_t runs = 0, tokens = 0;
    LIST_EACH(engine, &core->engines, link) {
        runs += engine->seen.runs;
        tokens += engine->seen.tokens;
    }
    return runs && tokens > runs ? tokens / runs : 1;
}

uint64_t placing_load(const struct engine *engine, uint64_t typical)
{
    const struct load_report *seen = &engine->seen;
    if (engine->live >= seen->runs)
        return seen->tokens + (engine->live - seen->runs) * typical;
    return (uint64_t)((double)seen->tokens * (double)engine->live / (double)seen->runs);
}

/* ---- who can take it --------------------------------------------------------------- */

static bool has_room(const struct core *core, const struct engine *engine)
{
    return engine_lets(core, engine) && engine->live < engine_limit(engine);
}

bool placing_has_room(const struct core *core, const struct policy *policy)
{
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link)
        if ((!policy || engine->policy == policy) && has_room(core, engine))
            return true;
    return false;
}

static void gather(const struct core *core, const struct job *job, struct open_engines *open)
{
    struct engine *engine, *last = job_engine(job);
    const bool avoids_last = job->group->work->rollouts[job->sample].avoids_engine;
    double sum = 0;
    uint64_t typical = placing_typical(core);
    const struct policy *policy = job_policy(job);
    open->count = 0;
    LIST_EACH(engine, &core->engines, link) {
        if (engine->policy != policy || !has_room(core, engine) || (engine == last && avoids_last))
            continue;
        open->items[open->count] = (struct candidate){engine, placing_load(engine, typical)};
        sum += (double)open->items[open->count++].load;
    }
    open->mean = open->count ? (uint64_t)(sum / (double)open->count) : 0;
    if (!open->count && last && last->policy == policy && has_room(core, last))
        open->items[open->count++] = (struct candidate){last, 0};
}

/* ---- live-tokens ------------------------------------------------------------------- */

static uint64_t draw(struct core *core, uint64_t sides) { return prng_next(&core->random) % sides; }

static bool holds_same_group(const struct job *job, const struct engine *engine)
{
    const struct group *group = job->group;
    const struct group_work *work = group->work;
    for (uint32_t k = 0; k < group->samples; k++)
        if ((job->stage == STAGE_RUN ? work->rollouts[k].engine : work->judging->engines[k]) == engine)
            return true;
    return false;
}

/* The least loaded one that knows the group's prompt and is not much above the mean; or NULL. */
static struct engine *choose_same_group(const struct open_engines *open, const struct job *job)
{
    const struct candidate *best = NULL;
    uint64_t most = open->mean + open->mean / 100 * AFFINITY_PERCENT;
    for (size_t i = 0; i < open->count; i++) {
        const struct candidate *item = &open->items[i];
        if (item->load <= most && (!best || item->load < best->load) && holds_same_group(job, item->engine))
            best = item;
    }
    return best ? best->engine : NULL;
}

static bool is_less(const struct engine *a, const struct engine *b)
{
    return a->live != b->live ? a->live < b->live : a->assigned < b->assigned;
}

static struct engine *choose_least(struct core *core, struct open_engines *open)
{
    size_t equal = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < open->count; i++)
        least = open->items[i].load < least ? open->items[i].load : least;
    for (size_t i = 0; i < open->count; i++)
        if (open->items[i].load == least)
            open->items[equal++] = open->items[i];
    struct engine *one = open->items[draw(core, equal)].engine;
    struct engine *two = open->items[draw(core, equal)].engine;
    return is_less(two, one) ? two : one;
}

static struct engine *by_live_tokens(struct core *core, struct open_engines *open, const struct job *job)
{
    struct engine *same_group = choose_same_group(open, job);
    return same_group ? same_group : choose_least(core, open);
}

/* ---- for comparison ---------------------------------------------------------------- */

static struct engine *by_assignments(struct core *core, struct open_engines *open, const struct job *job)
{
    struct engine *best = open->items[0].engine;
    (void)core, (void)job;
    for (size_t i = 1; i < open->count; i++)
        if (open->items[i].engine->assigned < best->assigned)
            best = open->items[i].engine;
    return best;
}

static struct engine *by_round_robin(struct core *core, struct open_engines *open, const struct job *job)
{
    (void)job;
    return open->items[core->turn++ % open->count].engine;
}

static uint64_t weight_of(const struct engine *engine, const struct job *job)
{
    uint64_t hash = prng_mix(job->sample);
    for (const char *at = job->group->id; *at; at++)
        hash = prng_mix(hash ^ (uint8_t)*at);
    for (uint32_t i = 0; i < engine->url_len; i++)
        hash = prng_mix(hash ^ (uint8_t)engine->url[i]);
    return hash;
}

static struct engine *by_hash(struct core *core, struct open_engines *open, const struct job *job)
{
    struct engine *best = open->items[0].engine;
    uint64_t most = weight_of(best, job);
    (void)core;
    for (size_t i = 1; i < open->count; i++) {
        uint64_t weight = weight_of(open->items[i].engine, job);
        best = weight > most ? open->items[i].engine : best;
        most = weight > most ? weight : most;
    }
    return best;
}

struct engine *placing_choose(struct core *core, const struct job *job)
{
    static struct engine *(*const policies[PLACING_COUNT])(struct core *, struct open_engines *, const struct job *) = {
        [PLACING_LIVE_TOKENS] = by_live_tokens,
        [PLACING_ASSIGNMENTS] = by_assignments,
        [PLACING_ROUND_ROBIN] = by_round_robin,
        [PLACING_HASH] = by_hash,
    };
    struct open_engines open;
    gather(core, job, &open);
    if (!open.count)
        return NULL;
    struct engine *engine = policies[core->placing](core, &open, job);
    engine->assigned++;
    return engine;
}
