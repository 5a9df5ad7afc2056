/* What workers are handed, what they answer, and what else happens because the core wants it. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/simulate/world.h"

enum { LOAD_REPORTS_A_SECOND = 128 }; /* with more engines each is told of so much less often */

/* ---- what comes and goes -------------------------------------------------------------------- */

static uint32_t take_job(struct world *world)
{
    uint32_t index = world->free_job;
    world->free_job = world->jobs[index].next;
    world->jobs[index] = (struct job){.next = NOBODY, .began_s = world->now_s};
    return index;
}

static void name_job(const struct job *job, char *name, size_t size)
{
    if (job->stage == STAGE_INIT)
        snprintf(name, size, "init:g%u", job->group);
    else
        snprintf(name, size, "%s:g%u/%u", stage_wire(job->stage), job->group, job->sample);
}

static void give_back(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    level_add(&world->held[job->stage], -1, world->now_s);
    job->token = 0;
    job->next = world->free_job;
    world->free_job = index;
}

void world_end_job(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    char name[48], worker[24];
    name_job(job, name, sizeof(name));
    snprintf(worker, sizeof(worker), "%c%u", world_letter(job->stage), job->worker);
    struct msg_job_result in = {.worker = slice_from_str(worker),
                                .job = slice_from_str(name),
                                .token = job->token,
                                .outcome = slice_from_str("ok"),
                                .ms = 1,
                                .reward = job->stage == STAGE_EVAL ? group_reward(world, job) : 0,
                                .has_reward = job->stage == STAGE_EVAL};
    if (job->stage == STAGE_INIT)
        world->groups[job->group].ready_s = world->now_s;
    give_back(world, index);
    world_say(world, "", MSG_job_result, &in);
    world_settle(world);
}

/* ---- what the core wants done ------------------------------------------------------------------ */

static double since(const struct world *world, const struct job *job)
{
    const double ready_s = job->stage == STAGE_EVAL ? world->ran_s[job->group * world->load->samples + job->sample]
                                                    : world->groups[job->group].ready_s;
    return world->now_s - ready_s;
}

static struct walk walk_of(const struct world *world, const struct job *job)
{
    return shape_walk(world->load->shape, world->load->seed, world->groups[job->group].task, group_sample(world, job));
}

/* How long an init or eval takes; its end is planned. */
static void begin_short(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    const struct load *load = world->load;
    double seconds;
    if (job->stage == STAGE_INIT) {
        seconds = shape_init_s(load->shape, load->seed, world->groups[job->group].task);
        world->sums.inits++;
        world->sums.init_s += seconds;
    } else {
        seconds = walk_of(world, job).eval_s;
        world->sums.evals++;
        world->sums.eval_s += seconds;
    }
    world_event(world, world->now_s + seconds, EVENT_JOB_ENDS, index);
}

/* A run begins with its setup; its first call is planned. */
static void begin_run(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    job->walk = walk_of(world, job);
    group_run_begins(world, &world->groups[job->group]);
    job->tools_s = job->walk.setup_s;
    world_event(world, world->now_s + job->walk.setup_s, EVENT_CALL, index);
}

static void begin_job(struct world *world, const struct effect *effect)
{
    uint32_t index = take_job(world);
    struct job *job = &world->jobs[index];
    job->stage = effect->stage;
    job->group = world_number(effect->group);
    job->sample = (uint32_t)effect->sample;
    job->worker = world_number(effect->worker);
    job->server = world_number(effect->engine);
    job->token = effect->token;
    level_add(&world->held[job->stage], 1, world->now_s);
    if (world->measures)
        spread_add(&world->waits[job->stage], since(world, job));
    if (job->stage == STAGE_RUN)
        begin_run(world, index);
    else
        begin_short(world, index);
}

/* A worker is told to stop a job, and does at once. */
static void cancel_job(struct world *world, const struct msg_job_cancel *in)
{
    uint32_t index = 0;
    struct due end;
    while (index < world->job_count && world->jobs[index].token != in->token)
        index++;
    if (index == world->job_count)
        return;
    if (world->jobs[index].stage == STAGE_RUN && !world->jobs[index].has_run)
        run_cancel(world, index);
    else
        agenda_remove(&world->agenda, index, EVENT_JOB_ENDS, &end);
    give_back(world, index);
}

static void hear(struct world *world, struct slice bytes)
{
    enum message_id id;
    struct msg_job_cancel in;
    if (message_peek(bytes, &id, NULL) && id == MSG_job_cancel && message_decode(id, bytes, &in, NULL))
        cancel_job(world, &in);
}

static void do_effect(struct world *world, const struct effect *effect)
{
    if (effect->kind == LANE_JOB)
        begin_job(world, effect);
    else if (effect->kind == LANE_SEND)
        hear(world, effect->bytes);
    else if (effect->kind == PERSIST_END) {
        world->ended += effect->end.outcome != OUTCOME_CANCELLED;
        world->cancelled += effect->end.outcome == OUTCOME_CANCELLED;
        world->seq = effect->end.seq;
    }
    trainer_see(world, effect);
}

void world_settle(struct world *world)
{
    do {
        core_dispatch(world->core, world_ms(world));
        struct effects effects = core_effects(world->core);
        for (size_t i = 0; i < effects.count; i++)
            do_effect(world, &effects.items[i]);
        core_effects_clear(world->core);
        world->failed |= core_failed(world->core);
    } while (by_hand_acts(world) && !world->failed);
}

/* ---- once a second ------------------------------------------------------------------------------ */

/* By one worker for all: the core adds up what workers tell, and the sum is the same. */
static void tell_load(struct world *world, uint64_t number)
{
    struct server *server = &world->servers[number];
    char worker[24], url[32];
    if (!server->changed)
        return;
    server->changed = false;
    snprintf(worker, sizeof(worker), "r%llu", (unsigned long long)(number % world->fleet->workers[STAGE_RUN]));
    snprintf(url, sizeof(url), "http://e%llu", (unsigned long long)number);
    struct msg_engine_load in = {.worker = slice_from_str(worker),
                                 .url = slice_from_str(url),
                                 .runs = server->runs,
                                 .tokens = server->tokens,
                                 .calls = server->calls};
    world_say(world, "", MSG_engine_load, &in);
}

void world_second(struct world *world)
{
    const uint64_t engines = world->fleet->engines;
    for (uint64_t n = 0; n < engines && n < LOAD_REPORTS_A_SECOND; n++)
        tell_load(world, world->next_load++ % engines);
    const struct sampling *sampling = &world->load->sampling;
    if (world->seq > world->acked && (!sampling->groups || trainer_is_by_hand(sampling))) {
        struct msg_stream_ack in = {.stream = slice_from_str("s"), .seq = world->seq};
        world_say(world, "trainer", MSG_stream_ack, &in);
        world->acked = world->seq;
    }
    core_tick(world->core, world_ms(world), world_ms(world));
    world_settle(world);
}
