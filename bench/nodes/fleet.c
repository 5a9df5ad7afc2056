/*
 * A simulated fleet on the broker's real core: how the ways to place rollouts compare.
 *
 *   bench_fleet [SEEDS]        5, if not given
 *
 * The core gets what it gets in earnest: submits, beats, results, and once a second what each worker
 * sees of each engine. Simulated are the engines and the agents. 8 engines with 600,000 tokens of prefix
 * cache each; a call waits for those before it (prefill, 15,000 tokens a second of what is not
 * cached), then decodes at a pace that sinks as more decode beside it. What is least recently used
 * leaves a full cache. 1,024 rollouts in groups of 8 with a prompt of 2,000 tokens in common; about 25
 * turns each of lognormal lengths, with tools in between whose times have a heavy tail. The order of the
 * ways is to be trusted, not the seconds.
 *
 * "every call" is round robin call by call, without regard to where the rollout was placed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/core/core.h"
#include "broker/simulate/agenda.h"
#include "broker/simulate/prefix.h"
#include "common/base/prng.h"

enum {
    ENGINES = 8,
    GROUPS = 128,
    SAMPLES = 8,
    ROLLOUTS = GROUPS * SAMPLES,
    WORKERS = 16,
    PROMPT_TOKENS = 2000,
    CACHE_TOKENS = 600000,
    PREFILL_PER_S = 15000,
    DECODE_PER_S = 80,
    BATCH_SLOW = 32,
    TURNS_MAX = 80,
    SEEDS_MAX = 100
};

enum step { STEP_CALL, STEP_FIRST_TOKEN, STEP_ANSWER };

struct rollout {
    unsigned worker, engine, turns_left;
    uint64_t token, context, answer_tokens, random;
    double called_s;
    bool runs;
};

struct engine {
    double prefill_free_s, speed;
    unsigned decoding;
    struct prefix_cache cache;
    struct prefix rollouts[ROLLOUTS], groups[GROUPS];
};

struct fleet {
    struct core *core;
    bool every_call;
    unsigned next_engine, ended;
    uint64_t seed, prompted, hit, calls;
    double now_s;
    struct engine engines[ENGINES];
    struct rollout rollouts[ROLLOUTS];
    struct agenda agenda;
    float first_token_s[ROLLOUTS * TURNS_MAX];
};

static void push(struct fleet *fleet, double at_s, uint32_t rollout, enum step step)
{
    if (!agenda_push(&fleet->agenda, (struct due){at_s, rollout, step}))
        abort();
}

/* ---- the core's side ---------------------------------------------------------------- */

static void say(struct fleet *fleet, const char *route, enum message_id id, const void *in)
{
    static const struct core_task task = {.id = {(const uint8_t *)"t", 1},
                                          .needs_engine = true,
                                          .limit_ms = {86400000, 86400000, 86400000},
                                          .total_ms = 604800000,
                                          .bytes = 1024};
    struct caller caller = {slice_from_str(route), {NULL, 0}, true};
    int64_t now_ms = 1 + (int64_t)(fleet->now_s * 1000);
    core_handle(fleet->core, now_ms, now_ms, &caller, id, in, id == MSG_group_submit ? &task : NULL, 1);
}

static void end_job(struct fleet *fleet, struct slice worker, struct slice job, uint64_t token)
{
    bool is_eval = job.data[0] == 'e';
    struct msg_job_result in = {.worker = worker,
                                .job = job,
                                .token = token,
                                .outcome = slice_from_str("ok"),
                                .ms = 1,
                                .reward = 1,
                                .has_reward = is_eval};
    say(fleet, "", MSG_job_result, &in);
}

static void begin_run(struct fleet *fleet, const struct effect *effect)
{
    unsigned group, sample;
    char name[32], worker[16];
    snprintf(name, sizeof(name), "%.*s", SLICE_ARG(effect->rollout));
    snprintf(worker, sizeof(worker), "%.*s", SLICE_ARG(effect->worker));
    sscanf(name, "g%u/%u", &group, &sample);
    uint32_t index = group * SAMPLES + sample;
    struct rollout *rollout = &fleet->rollouts[index];
    *rollout = (struct rollout){.worker = (unsigned)atoi(worker + 1),
                                .token = effect->token,
                                .engine = effect->engine.data[effect->engine.len - 1] - '0',
                                .random = fleet->seed * ROLLOUTS + index,
                                .context = PROMPT_TOKENS,
                                .runs = true};
    prng_uniform(&rollout->random); /* neighbouring seeds part */
    rollout->random *= 0xbf58476d1ce4e5b9u;
    rollout->turns_left = 1 + (unsigned)prng_lognormal(&rollout->random, 22, 0.5);
    rollout->turns_left = rollout->turns_left < TURNS_MAX ? rollout->turns_left : TURNS_MAX;
    push(fleet, fleet->now_s, index, STEP_CALL);
}

/* What the core wants done; a cycle as the I/O side has it, until it wants nothing more. */
static void settle(struct fleet *fleet)
{
    struct handed {
        char worker[16], job[32];
        uint64_t token;
    } handed[4096];
    for (size_t count = 1; count > 0;) {
        core_dispatch(fleet->core, 1 + (int64_t)(fleet->now_s * 1000));
        struct effects effects = core_effects(fleet->core);
        count = 0;
        for (size_t i = 0; i < effects.count; i++) {
            const struct effect *effect = &effects.items[i];
            fleet->ended += effect->kind == PERSIST_END;
            if (effect->kind == LANE_JOB && effect->stage == STAGE_RUN)
                begin_run(fleet, effect);
            if (effect->kind != LANE_JOB || effect->stage == STAGE_RUN)
                continue;
            struct handed *one = &handed[count++];
            snprintf(one->worker, sizeof(one->worker), "%.*s", SLICE_ARG(effect->worker));
            snprintf(one->job, sizeof(one->job), "%.*s", SLICE_ARG(effect->job));
            one->token = effect->token;
        }
        core_effects_clear(fleet->core);
        for (size_t i = 0; i < count; i++)
            end_job(fleet, slice_from_str(handed[i].worker), slice_from_str(handed[i].job), handed[i].token);
    }
}

static void hire(struct fleet *fleet, const char *stage, const char *name, uint64_t slots)
{
    struct msg_worker_beat in = {.worker = slice_from_str(name),
                                 .stage = slice_from_str(stage),
                                 .slots = slots,
                                 .lane = slice_from_str("tcp://h:1"),
                                 .host = slice_from_str("h"),
                                 .progress = 1};
    say(fleet, "", MSG_worker_beat, &in);
}

/* Once a second: what each worker's rollouts hold on each engine. */
static void tell_loads(struct fleet *fleet)
{
    static struct msg_engine_load loads[WORKERS][ENGINES];
    memset(loads, 0, sizeof(loads));
    for (unsigned i = 0; i < ROLLOUTS; i++) {
        const struct rollout *rollout = &fleet->rollouts[i];
        if (!rollout->runs)
            continue;
        loads[rollout->worker][rollout->engine].runs++;
        loads[rollout->worker][rollout->engine].tokens += rollout->context;
    }
    for (unsigned w = 0; w < WORKERS; w++)
        for (unsigned e = 0; e < ENGINES; e++) {
            char worker[16], url[16];
            snprintf(worker, sizeof(worker), "r%u", w);
            snprintf(url, sizeof(url), "http://e%u", e);
            loads[w][e].worker = slice_from_str(worker);
            loads[w][e].url = slice_from_str(url);
            say(fleet, "", MSG_engine_load, &loads[w][e]);
        }
    core_tick(fleet->core, 1 + (int64_t)(fleet->now_s * 1000), 1);
    settle(fleet);
}

static void begin(struct fleet *fleet, enum placing placing, unsigned sessions)
{
    struct core_settings settings = core_settings_default();
    char name[16];
    settings.beat_timeout_ms = settings.hold_grace_ms = 1000000000;
    fleet->core = core_create(&settings, fleet->seed, 1);
    core_set_placing(fleet->core, placing);
    for (unsigned e = 0; e < ENGINES; e++) {
        snprintf(name, sizeof(name), "http://e%u", e);
        say(fleet, "admin", MSG_engine_add, &(struct msg_engine_add){.url = slice_from_str(name)});
    }
    for (unsigned g = 0; g < GROUPS; g++) {
        snprintf(name, sizeof(name), "g%u", g);
        struct msg_group_submit in = {.group = slice_from_str(name),
                                      .stream = slice_from_str("s"),
                                      .samples = SAMPLES,
                                      .task = slice_from_str("{}")};
        say(fleet, "trainer", MSG_group_submit, &in);
    }
    hire(fleet, "init", "i0", 256);
    hire(fleet, "eval", "e0", 256);
    for (unsigned w = 0; w < WORKERS; w++) {
        snprintf(name, sizeof(name), "r%u", w);
        hire(fleet, "run", name, sessions / WORKERS);
    }
    settle(fleet);
}

/* ---- the engines --------------------------------------------------------------------- */

static void call(struct fleet *fleet, uint32_t index)
{
    struct rollout *rollout = &fleet->rollouts[index];
    if (fleet->every_call)
        rollout->engine = fleet->next_engine++ % ENGINES;
    struct engine *engine = &fleet->engines[rollout->engine];
    struct prefix *own = &engine->rollouts[index], *group = &engine->groups[index / SAMPLES];
    uint64_t there = own->tokens > group->tokens ? own->tokens : group->tokens;
    uint64_t hit = there < rollout->context ? there : rollout->context;
    double start_s = engine->prefill_free_s > fleet->now_s ? engine->prefill_free_s : fleet->now_s;
    engine->prefill_free_s = start_s + (double)(rollout->context - hit) / (PREFILL_PER_S * engine->speed);
    own->in_use++;
    prefix_keep(&engine->cache, group, PROMPT_TOKENS);
    fleet->prompted += rollout->context;
    fleet->hit += hit;
    rollout->called_s = fleet->now_s;
    push(fleet, engine->prefill_free_s, index, STEP_FIRST_TOKEN);
}

static void decode(struct fleet *fleet, uint32_t index)
{
    struct rollout *rollout = &fleet->rollouts[index];
    struct engine *engine = &fleet->engines[rollout->engine];
    double pace = DECODE_PER_S * engine->speed / (1 + (double)engine->decoding++ / BATCH_SLOW);
    if (fleet->calls < sizeof(fleet->first_token_s) / sizeof(*fleet->first_token_s))
        fleet->first_token_s[fleet->calls++] = (float)(fleet->now_s - rollout->called_s);
    rollout->answer_tokens = 1 + (uint64_t)prng_lognormal(&rollout->random, 200, 0.8);
    push(fleet, fleet->now_s + (double)rollout->answer_tokens / pace, index, STEP_ANSWER);
}

static void take_answer(struct fleet *fleet, uint32_t index)
{
    char worker[16], job[32];
    struct rollout *rollout = &fleet->rollouts[index];
    struct engine *engine = &fleet->engines[rollout->engine];
    struct prefix *own = &engine->rollouts[index];
    engine->decoding--;
    rollout->context += rollout->answer_tokens;
    prefix_keep(&engine->cache, own, rollout->context);
    own->in_use--;
    prefix_make_room(&engine->cache);
    rollout->context += (uint64_t)prng_lognormal(&rollout->random, 250, 1.0); /* what the tool says */
    if (--rollout->turns_left) {
        push(fleet, fleet->now_s + prng_lognormal(&rollout->random, 1.5, 1.3), index, STEP_CALL);
        return;
    }
    rollout->runs = false;
    snprintf(worker, sizeof(worker), "r%u", rollout->worker);
    snprintf(job, sizeof(job), "run:g%u/%u", index / SAMPLES, index % SAMPLES);
    end_job(fleet, slice_from_str(worker), slice_from_str(job), rollout->token);
    settle(fleet);
}

/* ---- runs and what they gave ---------------------------------------------------------- */

struct way {
    const char *name;
    enum placing placing;
    bool every_call;
};

struct figures {
    double hit_percent, makespan_s, first_token_p99_s;
};

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static struct figures run(const struct way *way, unsigned sessions, bool one_is_slow, unsigned seed)
{
    void (*const steps[])(struct fleet *, uint32_t) = {call, decode, take_answer};
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    fleet->every_call = way->every_call;
    fleet->seed = seed;
    for (unsigned e = 0; e < ENGINES; e++) {
        fleet->engines[e].speed = one_is_slow && e == 3 ? 0.5 : 1;
        prefix_cache_init(&fleet->engines[e].cache, CACHE_TOKENS);
    }
    begin(fleet, way->placing, sessions);
    for (double next_s = 1; fleet->agenda.count && fleet->ended < ROLLOUTS;) {
        if (fleet->agenda.items[0].at > next_s) {
            fleet->now_s = next_s++;
            tell_loads(fleet);
            continue;
        }
        struct due due = agenda_pop(&fleet->agenda);
        fleet->now_s = due.at;
        steps[due.kind](fleet, due.what);
    }
    if (fleet->ended < ROLLOUTS)
        abort(); /* the core forgot some */
    qsort(fleet->first_token_s, fleet->calls, sizeof(float), compare);
    struct figures figures = {100.0 * (double)fleet->hit / (double)fleet->prompted, fleet->now_s,
                              fleet->first_token_s[fleet->calls * 99 / 100]};
    core_destroy(&fleet->core);
    agenda_finish(&fleet->agenda);
    free(fleet);
    return figures;
}

static void compare_ways(unsigned sessions, bool one_is_slow, unsigned seeds)
{
    static const struct way ways[] = {
        {"live-tokens", PLACING_LIVE_TOKENS, false},
        {"assignments", PLACING_ASSIGNMENTS, false},
        {"hash", PLACING_HASH, false},
        {"round-robin", PLACING_ROUND_ROBIN, false},
        {"every call", PLACING_ROUND_ROBIN, true},
    };
    printf("%u rollouts at a time%s\n  %-12s %8s %18s %14s\n", sessions,
           one_is_slow ? ", one engine at half speed" : "", "placing", "hit", "makespan", "p99 to 1st");
    for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
        struct figures sum = {0};
        double squares = 0;
        for (unsigned seed = 1; seed <= seeds; seed++) {
            struct figures one = run(&ways[w], sessions, one_is_slow, seed);
            sum.hit_percent += one.hit_percent / seeds;
            sum.makespan_s += one.makespan_s / seeds;
            sum.first_token_p99_s += one.first_token_p99_s / seeds;
            squares += one.makespan_s * one.makespan_s / seeds;
        }
        double variance = squares - sum.makespan_s * sum.makespan_s;
        printf("  %-12s %6.1f %% %8.0f s +- %4.0f %12.2f s\n", ways[w].name, sum.hit_percent, sum.makespan_s,
               sqrt(variance > 0 ? variance : 0), sum.first_token_p99_s);
    }
}

int main(int argc, char **argv)
{
    unsigned seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    if (seeds < 1 || seeds > SEEDS_MAX)
        return 2;
    compare_ways(128, false, seeds);
    compare_ways(256, false, seeds);
    compare_ways(256, true, seeds);
    return 0;
}
