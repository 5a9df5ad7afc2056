/*
 * The broker's core by itself, without sockets and disk: bytes per queued rollout, and
 * rollouts a second through all three stages, and what a scrape of the metrics takes.
 *
 *   bench_core [ROLLOUTS]      one million, if not given
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/core/core.h"
#include "broker/core/state/sampler.h"

enum { SLOTS = 512, WORKERS = 8, CYCLE = 64 };

static uint64_t tag, rollouts = 1000000;

/* Of this process, so that others on the machine do not count. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static struct core *create(void)
{
    struct core_settings settings = core_settings_default();
    settings.rollouts_max = rollouts + 1024;
    settings.client_percent = 100; /* one client's may be all */
    struct core *core = core_create(&settings, 1, 1);
    core_effects_clear(core);
    return core;
}

static void say(struct core *core, const char *client, const char *name, enum message_id id, const void *in)
{
    static const struct core_task task = {.id = {(const uint8_t *)"gsm8k-0017", 10},
                                          .limit_ms = {1000000, 1000000, 1000000},
                                          .total_ms = 10000000,
                                          .bytes = 1024};
    struct caller caller = {slice_from_str(client), slice_from_str(name), false};
    core_handle(core, 1, 1, &caller, id, in, id == MSG_group_submit ? &task : NULL, 1);
}

/* Groups of `samples` until there are `rollouts`, spread over so many clients and streams. */
static void submit_all(struct core *core, uint64_t samples, unsigned clients, unsigned streams)
{
    for (uint64_t i = 0; i < rollouts / samples; i++) {
        char group[32], stream[32], client[32];
        snprintf(group, sizeof(group), "group-%llu", (unsigned long long)i);
        snprintf(client, sizeof(client), "client-%llu", (unsigned long long)(i % clients));
        snprintf(stream, sizeof(stream), "stream-%llu", (unsigned long long)(i % (clients * streams)));
        struct msg_group_submit in = {.tag = ++tag,
                                      .group = slice_from_str(group),
                                      .stream = slice_from_str(stream),
                                      .samples = samples,
                                      .task = slice_from_str("{}")};
        say(core, "route", client, MSG_group_submit, &in);
        core_effects_clear(core);
    }
}

static void measure_memory(uint64_t samples)
{
    size_t before = heap_bytes();
    double begin = seconds();
    struct core *core = create();
    submit_all(core, samples, 1, 1);
    printf("queued, groups of %llu: %.0f bytes per rollout, %.0f rollouts/s accepted\n", (unsigned long long)samples,
           (double)(heap_bytes() - before) / (double)rollouts, (double)rollouts / (seconds() - begin));
    core_destroy(&core);
    malloc_trim(0);
}

static void hire(struct core *core)
{
    static const char *const stages[] = {"init", "run", "eval"};
    for (unsigned i = 0; i < 3 * WORKERS; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%u", i);
        struct msg_worker_beat in = {.worker = slice_from_str(id),
                                     .stage = slice_from_str(stages[i % 3]),
                                     .slots = SLOTS,
                                     .lane = slice_from_str("tcp://h:1"),
                                     .host = slice_from_str("h"),
                                     .progress = 1};
        say(core, "", "", MSG_worker_beat, &in);
    }
}

struct handed {
    char worker[16], job[64];
    uint64_t token;
};

/* Takes up to `room` jobs out of the effects; returns how many, counts the ends. */
static size_t collect(struct core *core, struct handed *handed, size_t room, uint64_t *ended)
{
    size_t count = 0;
    struct effects effects = core_effects(core);
    for (size_t i = 0; i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        *ended += effect->kind == PERSIST_END;
        if (effect->kind != LANE_JOB || count == room)
            continue;
        struct handed *to = &handed[count++];
        snprintf(to->worker, sizeof(to->worker), "%.*s", SLICE_ARG(effect->worker));
        snprintf(to->job, sizeof(to->job), "%.*s", SLICE_ARG(effect->job));
        to->token = effect->token;
    }
    core_effects_clear(core);
    return count;
}

static void answer(struct core *core, const struct handed *handed)
{
    bool is_eval = handed->job[0] == 'e';
    struct msg_job_result in = {.worker = slice_from_str(handed->worker),
                                .job = slice_from_str(handed->job),
                                .token = handed->token,
                                .outcome = slice_from_str("ok"),
                                .reward = 1,
                                .has_reward = is_eval,
                                .ms = 1};
    say(core, "", "", MSG_job_result, &in);
}

/* A trainer for each of the first streams: it opens a sampler, and then asks for one batch after the other. */
enum { SAMPLERS_BUSY = 50, LIVE = 100000 };

struct trainers {
    unsigned count, next; /* next: to ask */
    uint64_t batches[SAMPLERS_BUSY];
};

static void open_samplers(struct core *core, unsigned count, uint64_t window)
{
    for (unsigned i = 0; i < count; i++) {
        char stream[32];
        snprintf(stream, sizeof(stream), "stream-%u", i);
        struct msg_sampler_open in = {.tag = ++tag,
                                      .stream = slice_from_str(stream),
                                      .trainer = slice_from_str("t"),
                                      .groups = 64,
                                      .filter = slice_from_str("none"),
                                      .has_filter = true,
                                      .window = window,
                                      .has_window = true,
                                      .over_sample = 32000,
                                      .has_over_sample = true};
        say(core, "route", "client-0", MSG_sampler_open, &in);
        core_effects_clear(core);
    }
}

static void note_batches(struct core *core, struct trainers *trainers)
{
    const struct effects effects = core_effects(core);
    for (size_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == PERSIST_BATCH)
            trainers->batches[strtoul((const char *)effects.items[i].stream.data + strlen("stream-"), NULL, 10)]++;
}

/* One of them asks for its next batch. */
static void ask(struct core *core, struct trainers *trainers)
{
    if (!trainers->count)
        return;
    const unsigned i = trainers->next++ % trainers->count;
    char stream[32];
    snprintf(stream, sizeof(stream), "stream-%u", i);
    struct msg_sampler_next in = {.tag = ++tag,
                                  .stream = slice_from_str(stream),
                                  .trainer = slice_from_str("t"),
                                  .batch = trainers->batches[i] + 1};
    say(core, "route", "client-0", MSG_sampler_next, &in);
    note_batches(core, trainers);
}

static void measure_speed(unsigned clients, unsigned streams, unsigned samplers)
{
    enum { ROOM = 4 * 3 * WORKERS * SLOTS };
    static struct handed held[ROOM];
    struct core *core = create();
    struct trainers trainers = {.count = samplers};
    open_samplers(core, samplers, samplers > 1 ? LIVE / 8 / samplers : 4096);
    submit_all(core, 8, clients, streams);
    hire(core);
    uint64_t ended = 0, jobs = 0;
    size_t head = 0, tail = 0; /* a ring of what the workers hold, oldest first */
    double begin = seconds();
    ask(core, &trainers);
    core_dispatch(core, 1);
    while (ended < rollouts / 8 * 8) {
        struct handed fresh[4 * CYCLE + 3 * WORKERS * SLOTS];
        size_t count = collect(core, fresh, sizeof(fresh) / sizeof(*fresh), &ended);
        for (size_t i = 0; i < count; i++)
            held[tail++ % ROOM] = fresh[i];
        unsigned answered = 0;
        for (; answered < CYCLE && head < tail; answered++, jobs++)
            answer(core, &held[head++ % ROOM]);
        const bool is_idle = count == 0 && answered == 0 && trainers.next >= jobs + 100 * samplers;
        if (is_idle && ended < rollouts / 8 * 8) {
            fprintf(stderr, "bench_core: %llu of %llu rollouts have ended, and nothing is left to do\n",
                    (unsigned long long)ended, (unsigned long long)rollouts);
            exit(1);
        }
        ask(core, &trainers);
        core_dispatch(core, 1);
    }
    double took = seconds() - begin;
    printf("%u clients x %u streams, %u samplers: %.0f rollouts/s, %.0f jobs/s, %.2f us a rollout\n", clients, streams,
           samplers, (double)ended / took, (double)jobs / took, took * 1e6 / (double)ended);
    core_destroy(&core);
}

/* ---- metrics ------------------------------------------------------------------------- */

/* A fleet of so many workers, a few engines, and jobs of which each worker has some. */
static struct core *create_fleet(unsigned workers)
{
    enum { FLEET_SLOTS = 8 };
    static const char *const stages[] = {"init", "run", "eval"};
    struct core *core = create();
    for (unsigned i = 0; i < workers; i++) {
        char id[32];
        snprintf(id, sizeof(id), "node%u-w%u", i / 16, i);
        struct msg_worker_beat in = {.worker = slice_from_str(id),
                                     .stage = slice_from_str(stages[i % 3]),
                                     .slots = FLEET_SLOTS,
                                     .lane = slice_from_str("tcp://h:1"),
                                     .host = slice_from_str("h"),
                                     .progress = 1};
        say(core, "", "", MSG_worker_beat, &in);
    }
    for (unsigned i = 0; i < 64; i++) {
        char url[64];
        snprintf(url, sizeof(url), "http://engine-%u.example:8080", i);
        struct msg_engine_add in = {.tag = ++tag, .url = slice_from_str(url)};
        core_handle(core, 1, 1, &(struct caller){.route = slice_from_str("route"), .is_admin = true}, MSG_engine_add,
                    &in, NULL, 0);
    }
    core_effects_clear(core);
    submit_all(core, 8, 4, 16);
    core_dispatch(core, 1);
    core_effects_clear(core);
    return core;
}

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

static void measure_scrapes(unsigned workers, bool is_openmetrics)
{
    enum { SCRAPES = 100 };
    double took[SCRAPES];
    struct buffer text = {0};
    struct core *core = create_fleet(workers);
    for (int i = 0; i < SCRAPES; i++) {
        const double begin = seconds();
        buffer_clear(&text);
        if (!core_metrics(core, is_openmetrics, &text))
            exit(1);
        took[i] = 1e3 * (seconds() - begin);
    }
    qsort(took, SCRAPES, sizeof(*took), compare);
    printf(
        "metrics of %u workers, %s: %.2f ms each at the median, %.2f ms at most, %zu KiB; one a second is %.2f %% of a "
        "core\n",
        workers, is_openmetrics ? "OpenMetrics" : "text", took[SCRAPES / 2], took[SCRAPES - 1], text.len >> 10,
        took[SCRAPES / 2] / 10);
    buffer_finish(&text);
    core_destroy(&core);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rollouts = strtoull(argv[1], NULL, 10) / 8 * 8;
    if (!rollouts)
        return 2;
    measure_scrapes(10, false);
    measure_scrapes(10000, false);
    measure_scrapes(10000, true);
    measure_memory(1);
    measure_memory(8);
    measure_speed(1, 1, 0);
    measure_speed(16, 16, 0);
    if (rollouts > 8 * SAMPLER_POOL_MAX)
        rollouts = 8 * SAMPLER_POOL_MAX;
    measure_speed(1, 1, 0);
    measure_speed(1, 1, 1);
    measure_speed(1, SAMPLERS_BUSY, 0);
    measure_speed(1, SAMPLERS_BUSY, SAMPLERS_BUSY); /* LIVE rollouts are live all the time */
    return 0;
}
