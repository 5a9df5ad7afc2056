/*
 * The whole core against whatever bytes say: each byte is a step, or says how a step is done.
 * Trainers submit, cancel, read and acknowledge; workers beat, lie, answer and die; clocks jump;
 * the broker dies before or after its commit and is restored from what was persisted. core_check
 * after each cycle. In the end all is well, and then every accepted rollout must end.
 */
#include "tests/broker/core/fuzz_workers.h"

/* ---- trainers and admins ------------------------------------------------------------------- */

static void submit(struct world *world)
{
    char task[4] = "[0]";
    if (world->rows.group_count + world->cycle_count + 2 > ROWS_MAX)
        return;
    task[1] = (char)('0' + roll(world, TASKS));
    struct msg_group_submit in = {.tag = number(world),
                                  .group = pick_group(world),
                                  .stream = pick_stream(world),
                                  .samples = 1 + roll(world, SAMPLES),
                                  .task = slice_from_str(task)};
    in.has_priority = roll(world, 2);
    in.priority = roll(world, 10);
    in.has_lease_ms = roll(world, 3) == 1;
    in.lease_ms = 1000 + number(world);
    say(world, who(world), MSG_group_submit, &in);
}

static void cancel(struct world *world)
{
    char name[128];
    unsigned which = 1u << roll(world, 3);
    if (roll(world, 16) == 15)
        which = roll(world, 8); /* none, or more than one */
    struct msg_rollout_cancel in = {.tag = number(world),
                                    .rollout = name_rollout(world, name),
                                    .group = pick_group(world),
                                    .stream = pick_stream(world),
                                    .has_rollout = which & 1,
                                    .has_group = which & 2,
                                    .has_stream = which & 4};
    say(world, who(world), MSG_rollout_cancel, &in);
}

static void get(struct world *world)
{
    char name[128];
    struct msg_rollout_get in = {.tag = number(world), .rollout = name_rollout(world, name)};
    say(world, who(world), MSG_rollout_get, &in);
}

static void fetch(struct world *world)
{
    struct msg_stream_fetch in = {.tag = 1,
                                  .stream = pick_stream(world),
                                  .from = number(world),
                                  .has_limit = roll(world, 2),
                                  .limit = number(world)};
    say(world, who(world), MSG_stream_fetch, &in);
}

static void ack(struct world *world)
{
    struct msg_stream_ack in = {.tag = 1, .stream = pick_stream(world), .seq = number(world)};
    say(world, who(world), MSG_stream_ack, &in);
}

static void renew(struct world *world)
{
    struct msg_stream_renew in = {.tag = 1, .stream = pick_stream(world)};
    say(world, who(world), MSG_stream_renew, &in);
}

static void subscribe(struct world *world) { core_may_read(world->core, who(world), pick_stream(world)); }

static void change_engine(struct world *world)
{
    struct msg_engine_add add = {.tag = 1, .url = slice_from_str(PICK(world, engines))};
    struct msg_engine_remove remove = {.tag = 1, .url = add.url};
    struct msg_engine_drain drain = {.tag = 1, .url = add.url};
    unsigned what = roll(world, 5);
    add.has_runs_max = roll(world, 2);
    add.runs_max = number(world);
    if (what == 0)
        say(world, who(world), MSG_engine_remove, &remove);
    else if (what == 1)
        say(world, who(world), MSG_engine_drain, &drain);
    else
        say(world, who(world), MSG_engine_add, &add);
}

static void change_policy(struct world *world)
{
    static const char *const versions[] = {"v1", "v2", "a b", "0123456789012345678901234567890"};
    static const char *const calls[] = {"finish", "abort", "hold", "sing"};
    struct slice url = slice_from_str(PICK(world, engines));
    bool has_url = roll(world, 2);
    struct msg_policy_set set = {
        .tag = 1, .version = slice_from_str(PICK(world, versions)), .engine = url, .has_engine = has_url};
    struct msg_policy_pause pause = {.tag = 1,
                                     .calls = slice_from_str(PICK(world, calls)),
                                     .bound_ms = 1000 + number(world) * 100,
                                     .engine = url,
                                     .has_engine = has_url};
    struct msg_policy_resume resume = {.tag = 1, .engine = url, .has_engine = has_url};
    unsigned what = roll(world, 3);
    if (what == 0)
        say(world, who(world), MSG_policy_set, &set);
    else if (what == 1)
        say(world, who(world), MSG_policy_pause, &pause);
    else
        say(world, who(world), MSG_policy_resume, &resume);
}

static void open_sampler(struct world *world)
{
    static const char *const trainers[] = {"t0", "t1"}, *const filters[] = {"mixed", "none", "sung"},
                             *const surplus[] = {"carry", "cancel", "sell"};
    const struct msg_sampler_open in = {.tag = number(world),
                                        .stream = pick_stream(world),
                                        .trainer = slice_from_str(PICK(world, trainers)),
                                        .groups = 1 + roll(world, 3),
                                        .has_filter = roll(world, 2),
                                        .filter = slice_from_str(PICK(world, filters)),
                                        .has_staleness = roll(world, 2),
                                        .staleness = roll(world, 3),
                                        .has_window = roll(world, 2),
                                        .window = number(world),
                                        .has_ahead = roll(world, 2),
                                        .ahead = roll(world, 3),
                                        .has_over_sample = roll(world, 2),
                                        .over_sample = 1000 + 100 * number(world),
                                        .has_early = roll(world, 2),
                                        .early = roll(world, SAMPLES),
                                        .has_surplus = roll(world, 2),
                                        .surplus = slice_from_str(PICK(world, surplus)),
                                        .has_replace_max = roll(world, 2),
                                        .replace_max = roll(world, 3)};
    say(world, who(world), MSG_sampler_open, &in);
}

static void ask_sampler(struct world *world)
{
    static const char *const trainers[] = {"t0", "t1", "nobody"};
    const struct msg_sampler_next next = {
        .tag = ++world->names, /* one that waits and is asked again is answered once */
        .stream = pick_stream(world),
        .trainer = slice_from_str(PICK(world, trainers)),
        .batch = number(world),
        .has_wait_ms = roll(world, 2),
        .wait_ms = number(world) * 1000};
    const struct msg_sampler_get get = {.tag = 1, .stream = next.stream};
    const struct msg_sampler_close close = {
        .tag = next.tag, .stream = next.stream, .has_cancel = roll(world, 2), .cancel = roll(world, 2)};
    switch (roll(world, 8)) {
    case 0: say(world, who(world), MSG_sampler_close, &close); break;
    case 1: say(world, who(world), MSG_sampler_get, &get); break;
    default: say(world, who(world), MSG_sampler_next, &next); break;
    }
}

static void list(struct world *world)
{
    static const char *const stage_words[] = {"init", "run", "eval", "walk"}, *const states[] = {"queued", "leased",
                                                                                                 "sung"};
    static const char *const outcome_words[] = {"ok", "infra", "well"};
    const struct msg_rollout_list list = {.tag = number(world),
                                          .ended = roll(world, 2),
                                          .has_stream = roll(world, 2),
                                          .stream = pick_stream(world),
                                          .has_group = roll(world, 2),
                                          .group = pick_group(world),
                                          .has_stage = roll(world, 2),
                                          .stage = slice_from_str(PICK(world, stage_words)),
                                          .has_state = roll(world, 2),
                                          .state = slice_from_str(PICK(world, states)),
                                          .has_outcome = roll(world, 2),
                                          .outcome = slice_from_str(PICK(world, outcome_words)),
                                          .has_age_ms = roll(world, 2),
                                          .age_ms = number(world),
                                          .has_limit = roll(world, 2),
                                          .limit = number(world)};
    say(world, who(world), MSG_rollout_list, &list);
}

static void administer(struct world *world)
{
    struct msg_status_get status = {.tag = number(world)};
    struct msg_ledger_backup backup = {.tag = 1, .name = pick_group(world)};
    struct msg_worker_drain drain = {.tag = 1,
                                     .worker = slice_from_str(world->workers[roll(world, WORKERS_MAX)].id),
                                     .host = slice_from_str(roll(world, 2) ? "h" : "elsewhere"),
                                     .has_worker = roll(world, 2),
                                     .has_host = roll(world, 2),
                                     .has_grace_s = roll(world, 2),
                                     .grace_s = number(world)};
    switch (roll(world, 5)) {
    case 0: say(world, who(world), MSG_status_get, &status); break;
    case 3: list(world); break;
    case 1: say(world, who(world), MSG_ledger_backup, &backup); break;
    case 2: say(world, who(world), MSG_worker_drain, &drain); break;
    default: core_disk_is_low(world->core, roll(world, 2)); break;
    }
}

/* ---- time ---------------------------------------------------------------------------------- */

static void tick(struct world *world)
{
    world->latest_ms = world->now_ms > world->latest_ms ? world->now_ms : world->latest_ms;
    world->due_ms = core_tick(world->core, world->now_ms, world->wall_ms);
}

static void wait_a_little(struct world *world)
{
    int64_t ms = roll(world, 256) * 8;
    world->now_ms += ms;
    world->wall_ms += ms;
    tick(world);
}

static void jump(struct world *world)
{
    static const int64_t steps[] = {0, 1000, 5000, 60000, 3600000, 604800000, -1000, -3600000, 31536000000};
    int64_t step = PICK(world, steps);
    unsigned which = roll(world, 4);
    if (which & 1)
        world->now_ms += step > 604800000 ? 604800000 : step > -world->now_ms ? step : 0;
    if (which & 2 || which == 0)
        world->wall_ms = world->wall_ms + step > 0 ? world->wall_ms + step : 0;
    if (which == 3 && step > 0) /* the broker itself stood still */
        core_stalled(world->core, world->now_ms, step);
    tick(world);
}

static void wait_until_due(struct world *world)
{
    if (world->due_ms > world->now_ms && world->due_ms < world->now_ms + 604800000) {
        world->wall_ms += world->due_ms - world->now_ms;
        world->now_ms = world->due_ms;
    }
    tick(world);
}

/* ---- a life -------------------------------------------------------------------------------- */

static void (*const steps[])(struct world *) = {
    submit,        submit,         submit,        cancel,        get,         fetch,       ack,           renew,
    subscribe,     change_engine,  administer,    any_beat,      any_beat,    any_beat,    odd_beat,      any_load,
    honest_answer, honest_answer,  honest_answer, honest_answer, odd_answer,  hurt,        wait_a_little, wait_a_little,
    jump,          wait_until_due, change_policy, open_sampler,  ask_sampler, ask_sampler,
};

static struct core_settings pick_settings(struct world *world)
{
    struct core_settings settings = core_settings_default();
    unsigned how = roll(world, 256);
    settings.retry_first_ms = 100;
    settings.retry_last_ms = 2000;
    settings.breaker_first_ms = 500;
    settings.breaker_last_ms = 4000;
    settings.breaker_faults = how & 1 ? 2 : 5;
    settings.infra_budget = how & 2 ? 2 : 8;
    settings.overload_ms = how & 2 ? 1 : 30000;
    settings.task_budget = how & 4 ? 3 : 1;
    settings.rollouts_max = how & 8 ? 6 : 1000;
    settings.task_bytes_max = how & 16 ? 2000 : settings.task_bytes_max;
    settings.results_max = how & 32 ? 8 : settings.results_max;
    settings.client_percent = how & 64 ? 50 : 100;
    if (how & 128) {
        settings.keep_count = 3;
        settings.keep_bytes = 16;
        settings.keep_time_ms = 10000;
        settings.early_cancel_ms = 5000;
        settings.adopt_grace_ms = 0;
    }
    return settings;
}

static bool has_live(const struct world *world)
{
    for (size_t i = 0; i < world->rows.group_count; i++)
        for (unsigned k = 0; k < world->rows.groups[i].samples; k++)
            if (!world->rows.groups[i].rollouts[k].ended)
                return true;
    return false;
}

static void close_samplers(struct world *world)
{
    for (unsigned s = 0; s < STREAMS; s++)
        say(world, &callers[0], MSG_sampler_close,
            &(struct msg_sampler_close){.tag = ++world->names, .stream = slice_from_str(streams[s])});
}

/* An engine, and two honest workers for each stage; no sampler holds a group, and nothing else happens. */
static void live_well(struct world *world)
{
    enum { ROUNDS = 600 };
    world->input.len = 0;
    if (world->now_ms < world->latest_ms)
        world->now_ms = world->latest_ms;
    core_disk_is_low(world->core, false);
    say(world, &callers[0], MSG_engine_add,
        &(struct msg_engine_add){.url = slice_from_str(engines[0]), .has_runs_max = true});
    say(world, &callers[0], MSG_policy_resume, &(struct msg_policy_resume){.tag = 1});
    close_samplers(world);
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        hire(world, &world->workers[i], i % STAGE_COUNT, 8);
    unsigned round = 0;
    for (; round < ROUNDS && (has_live(world) || world->unanswered); round++) {
        for (unsigned i = 0; i < WORKERS_MAX; i++) {
            struct fuzz_worker *worker = &world->workers[i];
            honest_beat(world, worker);
            for (size_t k = 0; k < worker->count; k++)
                answer(world, slice_from_str(worker->id), slice_from_str(worker->held[k].job), worker->held[k].token,
                       "ok");
        }
        world->now_ms += 500;
        tick(world);
        end_cycle(world, CRASH_NEVER);
    }
    if (round == ROUNDS) {
        AUTO_BUFFER status = {0};
        core_status(world->core, world->now_ms, &status);
        fprintf(stderr, "%.*s\n%lld unanswered\n", SLICE_ARG(buffer_peek(&status)), (long long)world->unanswered);
    }
    must(round < ROUNDS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE struct world *world = calloc(1, sizeof(*world));
    must(world);
    world->input = slice_of(data, size);
    world->now_ms = 1000;
    world->wall_ms = 1763697600000;
    world->settings = pick_settings(world);
    world->rows.tasks = tasks;
    world->rows.stream_names = streams;
    world->rows.engine_urls = engines;
    for (unsigned s = 0; s < STREAMS; s++)
        world->rows.streams[s].first = 1;
    world->core = rows_restore(&world->rows, &world->settings, world->now_ms, world->wall_ms);
    while (world->input.len) {
        unsigned what = roll(world, 256);
        steps[what % COUNT_OF(steps)](world);
        if (what < 190)
            end_cycle(world, CRASH_NEVER);
        else if (what < 200)
            end_cycle(world, what & 1 ? CRASH_BEFORE_COMMIT : CRASH_BEFORE_SEND);
        else /* the next message comes in the same cycle */
            check_core(world);
    }
    end_cycle(world, CRASH_NEVER);
    live_well(world);
    restart(world);
    check_core(world);
    forget_cycle(world);
    core_destroy(&world->core);
    rows_finish(&world->rows);
    return 0;
}
