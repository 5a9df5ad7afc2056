/* The world: opened and closed, what is said to its core, what is submitted. */
#include "broker/simulate/world.h"

#include <stdio.h>
#include <stdlib.h>

void world_event(struct world *world, double at_s, enum event event, uint32_t what)
{
    world->failed |= !agenda_push(&world->agenda, (struct due){at_s, what, event});
}

void prompt_forget(struct world *world, struct group *group)
{
    while (group->prefixes) {
        struct group_prefix *shared = group->prefixes;
        prefix_forget(&world->servers[shared->server].cache, &shared->prefix);
        group->prefixes = shared->next;
        free(shared);
    }
}

uint32_t world_number(struct slice text)
{
    uint32_t number = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] >= '0' && text.data[i] <= '9')
            number = number * 10 + (uint32_t)(text.data[i] - '0');
    return number;
}

void group_name(uint64_t number, char ret[24]) { snprintf(ret, 24, "g%llu", (unsigned long long)number); }

static const int64_t never_ms = (int64_t)1 << 50;

char world_letter(enum stage stage)
{
    static const char letters[STAGE_COUNT] = {'i', 'r', 'e'};
    return letters[stage];
}

int64_t world_ms(const struct world *world) { return 1 + (int64_t)(world->now_s * 1000); }

void world_say(struct world *world, const char *route, enum message_id id, const void *in)
{
    struct caller caller = {slice_from_str(route), {NULL, 0}, true};
    core_handle(world->core, world_ms(world), world_ms(world), &caller, id, in,
                id == MSG_group_submit ? &world->task : NULL, 1);
}

/* ---- who there is ------------------------------------------------------------------------- */

static void hire(struct world *world, enum stage stage, uint64_t number)
{
    char name[24];
    snprintf(name, sizeof(name), "%c%llu", world_letter(stage), (unsigned long long)number);
    struct msg_worker_beat in = {.worker = slice_from_str(name),
                                 .stage = slice_from_str(stage_wire(stage)),
                                 .slots = world->fleet->slots[stage],
                                 .lane = slice_from_str("tcp://h:1"),
                                 .host = slice_from_str("h"),
                                 .progress = 1};
    world_say(world, "", MSG_worker_beat, &in);
}

/* One beat is enough for ever, and nothing is taken away: no time-out can be reached. */
static struct core_settings settings_of(const struct load *load)
{
    struct core_settings settings = core_settings_default();
    settings.beat_timeout_ms = settings.hold_grace_ms = settings.deadline_grace_ms = never_ms;
    settings.rollouts_max = settings.results_max = load->groups * load->samples;
    settings.task_bytes_max = settings.results_bytes_max = UINT64_MAX / 128;
    return settings;
}

static bool make_room(struct world *world)
{
    const struct fleet *fleet = world->fleet;
    uint64_t jobs = 0;
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        jobs += fleet->slots[stage] * fleet->workers[stage];
    world->job_count = jobs;
    world->jobs = calloc(jobs, sizeof(*world->jobs));
    world->groups = calloc(world->load->groups, sizeof(*world->groups));
    world->ran_s = calloc(world->load->groups * world->load->samples, sizeof(*world->ran_s));
    world->servers = calloc(fleet->engines, sizeof(*world->servers));
    if (!world->jobs || !world->groups || !world->ran_s || !world->servers)
        return false;
    for (uint64_t i = 0; i < jobs; i++)
        world->jobs[i].next = i + 1 < jobs ? (uint32_t)(i + 1) : NOBODY;
    return true;
}

static void open_server(struct world *world, uint64_t number)
{
    struct server *server = &world->servers[number];
    char url[32];
    server->first_waiting = NOBODY;
    server->next_s = INFINITY;
    prefix_cache_init(&server->cache, world->fleet->speed.cache_tokens);
    snprintf(url, sizeof(url), "http://e%llu", (unsigned long long)number);
    world_say(world, "admin", MSG_engine_add, &(struct msg_engine_add){.url = slice_from_str(url)});
}

bool world_open(struct world *world, const struct fleet *fleet, const struct load *load)
{
    *world = (struct world){.fleet = fleet, .load = load};
    world->task = (struct core_task){.id = slice_from_str("t"),
                                     .needs_engine = true,
                                     .limit_ms = {never_ms, never_ms, never_ms},
                                     .total_ms = never_ms,
                                     .bytes = 1024};
    struct core_settings settings = settings_of(load);
    world->core = core_create(&settings, load->seed, 1);
    if (!world->core || !make_room(world))
        return false;
    for (uint64_t e = 0; e < fleet->engines; e++)
        open_server(world, e);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        for (uint64_t w = 0; w < fleet->workers[stage]; w++)
            hire(world, stage, w);
    return !world->failed;
}

void world_close(struct world *world)
{
    for (uint64_t g = 0; world->groups && g < world->submitted; g++)
        prompt_forget(world, &world->groups[g]);
    for (uint64_t e = 0; world->servers && e < world->fleet->engines; e++)
        agenda_finish(&world->servers[e].sampling);
    core_destroy(&world->core);
    agenda_finish(&world->agenda);
    free(world->jobs);
    free(world->groups);
    free(world->ran_s);
    free(world->servers);
}

/* ---- what it submits ---------------------------------------------------------------------------- */

static void submit(struct world *world, uint32_t task, uint32_t attempt)
{
    char name[24];
    struct group *group = &world->groups[world->submitted];
    *group = (struct group){
        .ready_s = world->now_s, .runs_left = (uint32_t)world->load->samples, .task = task, .attempt = attempt};
    group_submitted(world, group);
    group_name(world->submitted++, name);
    struct msg_group_submit in = {.group = slice_from_str(name),
                                  .stream = slice_from_str("s"),
                                  .samples = world->load->samples,
                                  .task = slice_from_str("{}")};
    world_say(world, "trainer", MSG_group_submit, &in);
}

void world_submit(struct world *world) { submit(world, (uint32_t)world->tasks++, 0); }

void world_submit_again(struct world *world, const struct group *before)
{
    submit(world, before->task, before->attempt + 1);
}
