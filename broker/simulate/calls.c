/* Model calls: how engines take, read and answer them, and what is left in their caches. */
#include <stdlib.h>

#include "broker/simulate/world.h"

/* ---- sampling ------------------------------------------------------------------------------ */

/* Tokens a second for each call that samples. */
static double pace(const struct world *world, const struct server *server)
{
    const struct speed *speed = &world->fleet->speed;
    double share = speed->tokens_per_s / (double)server->sampling.count;
    return share < speed->call_tokens_per_s ? share : speed->call_tokens_per_s;
}

void server_advance(struct world *world, struct server *server)
{
    if (server->sampling.count) {
        double more = pace(world, server) * (world->now_s - server->changed_s);
        server->given += more;
        world->sampled += more * (double)server->sampling.count;
    }
    server->changed_s = world->now_s;
}

/* Its next end, as it is from now on; what was planned before is stale, unless it is the same. */
static void plan(struct world *world, struct server *server)
{
    static const double same_s = 1e-9;
    const double before_s = server->next_s;
    server->next_s = INFINITY;
    if (!server->sampling.count)
        return;
    double left = (server->sampling.items[0].at - server->given) / pace(world, server);
    server->next_s = world->now_s + (left > 0 ? left : 0);
    if (fabs(server->next_s - before_s) < same_s && before_s > world->now_s) {
        server->next_s = before_s;
        return;
    }
    world_event(world, server->next_s, EVENT_SERVER, (uint32_t)(server - world->servers));
}

/* ---- reading prompts ------------------------------------------------------------------------- */

static struct group_prefix *group_prefix_find(const struct group *group, uint32_t server)
{
    for (struct group_prefix *shared = group->prefixes; shared; shared = shared->next)
        if (shared->server == server)
            return shared;
    return NULL;
}

/* The group's prompt is in this server's cache. */
static void prompt_keep(struct world *world, const struct job *job, uint64_t tokens)
{
    struct group *group = &world->groups[job->group];
    struct group_prefix *shared = group_prefix_find(group, job->server);
    if (!shared) {
        shared = calloc(1, sizeof(*shared));
        if (!shared) {
            world->failed = true;
            return;
        }
        shared->server = job->server;
        shared->next = group->prefixes;
        group->prefixes = shared;
    }
    prefix_keep(&world->servers[job->server].cache, &shared->prefix, tokens);
}

static uint64_t cached_of(const struct world *world, const struct job *job)
{
    const struct group_prefix *shared = group_prefix_find(&world->groups[job->group], job->server);
    uint64_t cached = job->prefix.tokens;
    if (shared && shared->prefix.tokens > cached)
        cached = shared->prefix.tokens;
    return cached < job->turn.context ? cached : job->turn.context;
}

static void admit(struct world *world, struct server *server, uint32_t index)
{
    struct job *job = &world->jobs[index];
    uint64_t fresh = job->turn.context - cached_of(world, job);
    double start_s = server->read_until_s > world->now_s ? server->read_until_s : world->now_s;
    server->calls++;
    server->read_until_s = start_s + (double)fresh / world->fleet->speed.prefill_per_s;
    job->read += fresh;
    world->read += (double)fresh;
    world->prompted += (double)job->turn.context;
    job->prefix.in_use = 1;
    if (job->walk.turn == 1)
        prompt_keep(world, job, shape_prompt(world->load->shape, world->load->seed, world->groups[job->group].task));
    world_event(world, server->read_until_s, EVENT_PROMPT_READ, index);
}

static void wait_for(struct world *world, struct server *server, uint32_t index)
{
    world->jobs[index].next = NOBODY;
    if (server->first_waiting == NOBODY)
        server->first_waiting = index;
    else
        world->jobs[server->last_waiting].next = index;
    server->last_waiting = index;
}

static void admit_next(struct world *world, struct server *server)
{
    uint32_t index = server->first_waiting;
    if (index == NOBODY || server->calls >= world->fleet->speed.calls_max)
        return;
    server->first_waiting = world->jobs[index].next;
    admit(world, server, index);
}

/* ---- a call from its begin to its end --------------------------------------------------------- */

/* What its worker tells of it: from its first call on, it is there with its context. */
static void hold(struct server *server, struct job *job, uint64_t tokens)
{
    server->runs += !job->is_seen;
    job->is_seen = true;
    server->tokens += tokens - job->held;
    server->changed = true;
    job->held = tokens;
}

void call_begin(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    struct server *server = &world->servers[job->server];
    shape_turn(world->load->shape, &job->walk, &job->turn);
    job->called_s = world->now_s;
    hold(server, job, job->turn.context);
    if (server->calls < world->fleet->speed.calls_max)
        admit(world, server, index);
    else
        wait_for(world, server, index);
}

void call_read(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    struct server *server = &world->servers[job->server];
    if (world->measures)
        spread_add(&world->first_token, world->now_s - job->called_s);
    server_advance(world, server);
    struct due end = {server->given + (double)job->turn.sampled, index, 0};
    world->failed |= !agenda_push(&server->sampling, end);
    level_add(&world->sampling, 1, world->now_s);
    plan(world, server);
}

/* ---- runs ------------------------------------------------------------------------------------- */

static void add_run(struct runs *runs, const struct job *job, double now_s)
{
    runs->count++;
    runs->run_s += now_s - job->began_s;
    runs->tools_s += job->tools_s;
    runs->sampled += job->sampled;
    runs->read += job->read;
}

/* Nothing of it is left in its engine. */
static void leave_server(struct world *world, struct job *job)
{
    struct server *server = &world->servers[job->server];
    struct group *group = &world->groups[job->group];
    server->runs -= job->is_seen;
    server->tokens -= job->held;
    server->changed = true;
    prefix_forget(&server->cache, &job->prefix);
    if (--group->runs_left == 0)
        prompt_forget(world, group);
}

static void run_end(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    leave_server(world, job);
    add_run(&world->runs, job, world->now_s);
    if (world->measures)
        add_run(&world->measured_runs, job, world->now_s);
    world->ran_s[job->group * world->load->samples + job->sample] = world->now_s;
    job->has_run = true;
    world_event(world, world->now_s, EVENT_JOB_ENDS, index);
}

static void call_end(struct world *world, struct server *server, uint32_t index)
{
    struct job *job = &world->jobs[index];
    uint64_t context = job->turn.context + job->turn.sampled;
    server->calls--;
    hold(server, job, context);
    job->sampled += job->turn.sampled;
    group_count_tokens(world, &world->groups[job->group], job->turn.sampled);
    job->prefix.in_use = 0;
    level_add(&world->sampling, -1, world->now_s);
    prefix_keep(&server->cache, &job->prefix, context);
    prefix_make_room(&server->cache);
    if (job->walk.turn == job->walk.turns) {
        run_end(world, index);
        return;
    }
    job->tools_s += job->turn.tool_s;
    world_event(world, world->now_s + job->turn.tool_s, EVENT_CALL, index);
}

void server_due(struct world *world, uint32_t index, double at_s)
{
    struct server *server = &world->servers[index];
    if (at_s != server->next_s)
        return;
    server_advance(world, server);
    server->given = server->sampling.items[0].at;
    while (server->sampling.count && server->sampling.items[0].at <= server->given) {
        uint32_t job = agenda_pop(&server->sampling).what;
        call_end(world, server, job);
        admit_next(world, server);
    }
    plan(world, server);
}

/* ---- cancelled ---------------------------------------------------------------------------------- */

/* Its call leaves those that wait for the server; false if it is not among them. */
static bool stop_waiting(struct world *world, struct server *server, uint32_t index)
{
    uint32_t before = NOBODY, at = server->first_waiting;
    while (at != NOBODY && at != index) {
        before = at;
        at = world->jobs[at].next;
    }
    if (at == NOBODY)
        return false;
    if (before == NOBODY)
        server->first_waiting = world->jobs[index].next;
    else
        world->jobs[before].next = world->jobs[index].next;
    server->last_waiting = server->last_waiting == index ? before : server->last_waiting;
    return true;
}

/* Its call ends in the midst of what it samples; false if it samples nothing. */
static bool stop_sampling(struct world *world, struct server *server, uint32_t index)
{
    const struct job *job = &world->jobs[index];
    struct due end;
    server_advance(world, server);
    if (!agenda_remove(&server->sampling, index, 0, &end))
        return false;
    const double left = end.at - server->given, sampled = (double)job->turn.sampled - left;
    group_count_tokens(world, &world->groups[job->group], sampled > 0 ? (uint64_t)sampled : 0);
    level_add(&world->sampling, -1, world->now_s);
    return true;
}

void run_cancel(struct world *world, uint32_t index)
{
    struct job *job = &world->jobs[index];
    struct server *server = &world->servers[job->server];
    struct due due;
    const bool is_served = stop_sampling(world, server, index) ||
                           agenda_remove(&world->agenda, index, EVENT_PROMPT_READ, &due);
    if (!is_served && !stop_waiting(world, server, index))
        agenda_remove(&world->agenda, index, EVENT_CALL, &due);
    job->prefix.in_use = 0;
    leave_server(world, job);
    server->calls -= is_served;
    if (is_served)
        admit_next(world, server);
    plan(world, server);
}
