#include "broker/simulate/simulate.h"

#include <errno.h>

#include "broker/simulate/world.h"
#include "common/base/prng.h"

/* Of ends: until it is warm, and from then on. */
enum { WARM_LEAST = 200, MEASURED_LEAST = 600, PROGRESS_EVENTS = 1 << 16, KIND_ARRIVALS = 2 };

/* ---- what comes in ------------------------------------------------------------------------- */

static void plan_arrival(struct world *world, uint64_t *prng)
{
    double groups_per_s = world->load->per_hour / (double)world->load->samples / 3600;
    world_event(world, world->now_s - log(prng_uniform(prng)) / groups_per_s, EVENT_ARRIVAL, 0);
}

static void submit_all(struct world *world)
{
    while (world->submitted < world->load->groups && !world->failed) {
        world_submit(world);
        if (world->submitted % 1024 == 0)
            world_settle(world);
    }
    world_settle(world);
}

static void do_event(struct world *world, const struct due *due, uint64_t *prng)
{
    switch ((enum event)due->kind) {
    case EVENT_JOB_ENDS: world_end_job(world, due->what); break;
    case EVENT_CALL: call_begin(world, due->what); break;
    case EVENT_PROMPT_READ: call_read(world, due->what); break;
    case EVENT_SERVER: server_due(world, due->what, due->at); break;
    case EVENT_ARRIVAL:
        world_submit(world);
        world_settle(world);
        if (world->submitted < world->load->groups)
            plan_arrival(world, prng);
        break;
    case EVENT_ASK:
        trainer_ask(world);
        world_settle(world);
        break;
    case EVENT_SECOND:
        world_second(world);
        world_event(world, world->now_s + 1, EVENT_SECOND, 0);
        break;
    }
}

/* ---- what is measured -------------------------------------------------------------------------- */

static struct mark take_mark(struct world *world)
{
    struct mark mark = {.at_s = world->now_s, .ended = world->ended};
    for (uint64_t e = 0; e < world->fleet->engines; e++)
        server_advance(world, &world->servers[e]);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        mark.held_s[stage] = level_sum(&world->held[stage], world->now_s);
    mark.sampling_s = level_sum(&world->sampling, world->now_s);
    mark.sampled = world->sampled;
    mark.batches = world->trainer.batches;
    mark.tally = world->trainer.tally;
    mark.learning_s = level_sum(&world->trainer.learning, world->now_s);
    mark.prompted = world->prompted;
    mark.read = world->read;
    return mark;
}

static void note_wait(struct part_figures *part, const struct spread *spread)
{
    part->waited = spread->count > 0;
    part->wait_p50_s = spread_at(spread, 0.5);
    part->wait_p99_s = spread_at(spread, 0.99);
}

/* Rollouts an hour of `has` of something, of which one rollout takes so many seconds. */
static double per_hour(double has, double seconds) { return seconds > 0 ? has / seconds * 3600 : INFINITY; }

static double mean(double sum, uint64_t count) { return count ? sum / (double)count : 0; }

/* The runs that tell what one is like: where evals are short of slots all may have ended before it was warm. */
static const struct runs *typical_runs(const struct world *world)
{
    return world->measured_runs.count >= WARM_LEAST ? &world->measured_runs : &world->runs;
}

/* What a rollout takes of each part, where it waits for nothing. */
static void note_capacities(const struct world *world, struct figures *figures)
{
    const struct speed *speed = &world->fleet->speed;
    const struct sums *sums = &world->sums;
    const struct runs *runs = typical_runs(world);
    struct part_figures *parts = figures->parts;
    double sampled = mean((double)runs->sampled, runs->count), read = mean((double)runs->read, runs->count);
    double call_share = (double)speed->calls_max * speed->call_tokens_per_s;
    double pace = speed->tokens_per_s < call_share ? speed->tokens_per_s : call_share;
    double fastest = speed->call_tokens_per_s < pace ? speed->call_tokens_per_s : pace;
    double alone_s = mean(runs->tools_s, runs->count) + sampled / fastest + read / speed->prefill_per_s;
    double init_s = mean(sums->init_s, sums->inits), eval_s = mean(sums->eval_s, sums->evals);
    double engines = (double)world->fleet->engines;
    parts[PART_INIT].per_hour = per_hour((double)(parts[PART_INIT].has * world->load->samples), init_s);
    parts[PART_RUN].per_hour = per_hour((double)parts[PART_RUN].has, alone_s);
    parts[PART_EVAL].per_hour = per_hour((double)parts[PART_EVAL].has, eval_s);
    parts[PART_SAMPLING].per_hour = per_hour(engines, sampled / pace);
    parts[PART_PROMPTS].per_hour = per_hour(engines, read / speed->prefill_per_s);
    figures->run_s = mean(runs->run_s, runs->count);
}

static uint64_t tokens_of(const struct tally *tally)
{
    uint64_t sum = 0;
    for (unsigned state = 0; state < GROUP_STATES; state++)
        sum += tally->tokens[state];
    return sum;
}

static void note_batches(const struct tally *from, const struct tally *to, struct figures *figures)
{
    const uint64_t kept = to->kept - from->kept;
    figures->filtered = to->groups[GROUP_FILTERED] - from->groups[GROUP_FILTERED];
    figures->wasted = to->groups[GROUP_WASTED] - from->groups[GROUP_WASTED];
    figures->kept = mean((double)kept, kept + figures->filtered);
    figures->asked = to->asked - from->asked;
    figures->taken = to->groups[GROUP_IN_BATCH] - from->groups[GROUP_IN_BATCH];
    figures->age = mean((double)(to->ages - from->ages), figures->taken);
    figures->tokens = tokens_of(to) - tokens_of(from);
    figures->tokens_taken = to->tokens[GROUP_IN_BATCH] - from->tokens[GROUP_IN_BATCH];
    figures->tokens_filtered = to->tokens[GROUP_FILTERED] - from->tokens[GROUP_FILTERED];
    figures->tokens_wasted = to->tokens[GROUP_WASTED] - from->tokens[GROUP_WASTED];
}

static void take_figures(const struct world *world, const struct mark *from, const struct mark *to,
                         struct figures *figures)
{
    const struct fleet *fleet = world->fleet;
    struct part_figures *parts = figures->parts;
    double seconds = to->at_s - from->at_s, engines = (double)fleet->engines;
    figures->from_s = from->at_s;
    figures->to_s = to->at_s;
    figures->ended = to->ended - from->ended;
    figures->looked_at = to->ended;
    figures->per_hour = (double)figures->ended / seconds * 3600;
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++) {
        struct part_figures *part = &parts[stage]; /* the first parts are the stages */
        part->has = fleet->slots[stage] * fleet->workers[stage];
        part->busy = (to->held_s[stage] - from->held_s[stage]) / seconds / (double)part->has;
        note_wait(part, &world->waits[stage]);
    }
    parts[PART_SAMPLING].has = parts[PART_PROMPTS].has = fleet->engines;
    double sampled = to->sampled - from->sampled, read = to->read - from->read;
    double prompted = to->prompted - from->prompted, sampling_s = to->sampling_s - from->sampling_s;
    figures->cached = prompted > 0 ? 1 - read / prompted : 0;
    parts[PART_SAMPLING].busy = sampled / seconds / fleet->speed.tokens_per_s / engines;
    parts[PART_PROMPTS].busy = read / seconds / fleet->speed.prefill_per_s / engines;
    note_wait(&parts[PART_PROMPTS], &world->first_token);
    figures->calls = sampling_s / seconds;
    figures->call_tokens_per_s = sampling_s > 0 ? sampled / sampling_s : 0;
    note_capacities(world, figures);
    figures->batches = to->batches - from->batches;
    figures->learning = (to->learning_s - from->learning_s) / seconds;
    note_batches(&from->tally, &to->tally, figures);
}

/* ---- all of it ------------------------------------------------------------------------------------ */

const char *sampling_way_word(enum sampling_way way)
{
    static const char *const words[] = {
#define X(name, word) word,
        SAMPLING_WAYS(X)
#undef X
    };
    return words[way];
}

/* Between how many ends it is measured, or, with batches, how many that are told. */
struct span {
    uint64_t from, to;
};

static uint64_t at_least(uint64_t n, uint64_t least) { return n > least ? n : least; }

/* The first batches are made of what was released at the start, unless it is the start that is wanted. */
static struct span steady(uint64_t run_slots, const struct sampling *sampling)
{
    enum { BATCHES_WARM = 4, BATCHES = 16 };
    if (sampling->groups && sampling->solved_count > 1)
        return (struct span){0, sampling->solved_count};
    if (sampling->groups)
        return (struct span){BATCHES_WARM, BATCHES_WARM + BATCHES};
    const uint64_t warm = at_least(run_slots, WARM_LEAST);
    return (struct span){warm, warm + at_least(run_slots / 2, MEASURED_LEAST)};
}

/* Groups for so many batches, with what chance may add, and what is at work or carried meanwhile. */
static uint64_t enough_groups(uint64_t run_slots, uint64_t samples, const struct sampling *sampling, uint64_t batches)
{
    static const double spare = 1.3, least = 0.001;
    const double acceptance = sampling_acceptance(sampling, samples);
    const double asked = (double)((batches + 1 + sampling->ahead) * sampling->groups);
    const uint64_t at_work = 8 * sampling->groups + sampling->round + run_slots / samples;
    const uint64_t carried = sampling->way == SAMPLING_CARRY_PROMPTS ? batches * at_work : at_work;
    return (uint64_t)(spare * asked / (acceptance > least ? acceptance : least)) + carried;
}

uint64_t simulate_enough(uint64_t run_slots, uint64_t samples, const struct sampling *sampling)
{
    const struct span span = steady(run_slots, sampling);
    return sampling->groups ? enough_groups(run_slots, samples, sampling, span.to) * samples : span.to + span.from;
}

static struct span span_of(const struct fleet *fleet, const struct load *load, bool *ret_whole)
{
    uint64_t all = load->groups * load->samples;
    uint64_t slots = fleet->slots[STAGE_RUN] * fleet->workers[STAGE_RUN];
    *ret_whole = all < simulate_enough(slots, load->samples, &load->sampling);
    if (!*ret_whole)
        return steady(slots, &load->sampling);
    return (struct span){0, load->sampling.groups ? UINT64_MAX : all};
}

/* Everything that may be submitted has been, and has ended. */
static bool is_exhausted(const struct world *world)
{
    const struct load *load = world->load;
    return world->submitted == load->groups && world->ended + world->cancelled == load->groups * load->samples;
}

static uint64_t done_of(const struct world *world)
{
    return world->load->sampling.groups ? world->trainer.batches : world->ended;
}

/* Until so much is done, and everything that happens in the same moment has happened. */
static void play(struct world *world, uint64_t until, struct span span, uint64_t *prng, simulate_progress progress,
                 void *arg, uint64_t *events)
{
    static const double same_moment_s = 1e-6;
    while (world->agenda.count && !world->failed) {
        const bool is_done = done_of(world) >= until || is_exhausted(world);
        if (is_done && world->agenda.items[0].at > world->now_s + same_moment_s)
            return;
        struct due due = agenda_pop(&world->agenda);
        world->now_s = due.at > world->now_s ? due.at : world->now_s;
        do_event(world, &due, prng);
        if (++*events % PROGRESS_EVENTS == 0 && progress)
            progress(arg, (double)done_of(world) / (double)span.to);
    }
}

int simulate(const struct fleet *fleet, const struct load *load, simulate_progress progress, void *arg,
             struct figures *ret, struct fail *fail)
{
    struct world world;
    uint64_t prng = prng_of(load->seed, KIND_ARRIVALS, 0);
    *ret = (struct figures){0};
    struct span span = span_of(fleet, load, &ret->is_whole);
    bool opened = world_open(&world, fleet, load);
    if (opened) {
        world_settle(&world);
        world_event(&world, 1, EVENT_SECOND, 0);
        world.measures = !span.from;
        trainer_begin(&world);
        struct mark from = take_mark(&world);
        if (load->per_hour > 0)
            plan_arrival(&world, &prng);
        else if (!trainer_is_by_hand(&load->sampling))
            submit_all(&world);
        if (span.from) {
            play(&world, span.from, span, &prng, progress, arg, &ret->events);
            world.measures = true;
            from = take_mark(&world);
        }
        play(&world, span.to, span, &prng, progress, arg, &ret->events);
        struct mark to = take_mark(&world);
        take_figures(&world, &from, &to, ret);
    }
    bool failed = !opened || world.failed;
    world_close(&world);
    return failed ? fail_set(fail, -ENOMEM, "out of memory") : 0;
}
