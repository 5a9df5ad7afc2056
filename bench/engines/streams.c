/* streams.c - turns whole and streamed, in turn: what they cost, and how soon after its last token each is in hand. */
#include "bench/engines/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/engines/generate.h"

enum { TURN = 2000, LATENCY_MS = 5 };

/* Who hears it: as a viewer who only looks. */
static void on_heard(void *arg, struct slice text) { (void)arg, (void)text; }
static void on_taken_back(void *arg) { (void)arg; }

static const struct engine_listener looker = {.heard = on_heard, .taken_back = on_taken_back};

static const struct way {
    const char *name;
    size_t interval; /* of the engine's events; 0: it answers whole */
    const struct engine_listener *listener;
    enum engine_along along;
} ways[] = {
    {"whole", 0, NULL, ENGINE_ALONG_NEVER},
    {"read along, 64 tokens an event", 64, NULL, ENGINE_ALONG_PAYS},
    {"read along, 512 tokens an event", ENGINE_ALONG_TOKENS, NULL, ENGINE_ALONG_PAYS},
    {"heard, a token an event", 1, &looker, ENGINE_ALONG_NEVER},
};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

struct measured {
    double *cpu, *next, *done; /* ms */
};

static struct {
    const struct route *route;
    size_t count;
    pid_t pids[WAYS];
    char urls[WAYS][64];
    const struct engine_times *times[WAYS];
    struct measured measured[WAYS];
} bench;

/* Ids alone tell no text that is heard. */
static bool is_measured(size_t way) { return !ways[way].listener || !bench.route->has_generate; }

static void sample(size_t way, size_t i)
{
    struct engine *engine = open_engine(bench.urls[way], bench.route);
    engine->info.streams = true;
    engine->info.along = ways[way].along;
    const struct engine_turn turn = {
        .prompt = &bench_prompt, .sampling = &bench_sampling, .max_tokens = TURN, .listener = ways[way].listener};
    struct generation got = {0};
    struct fail fail = {0};
    const struct measured *measured = &bench.measured[way];
    const double start = cpu_ms();
    if (engine_generate_turn(engine, &turn, &got, &fail) < 0)
        give_up(ways[way].name, fail.text);
    const int64_t done_us = clock_us();
    measured->cpu[i] = cpu_ms() - start;
    measured->next[i] = (double)(bench.times[way]->next_us - bench.times[way]->ended_us) / 1e3;
    measured->done[i] = (double)(done_us - bench.times[way]->ended_us) / 1e3;
    if (got.sampled.count != TURN)
        give_up(ways[way].name, "not all tokens are there");
    generation_finish(&got);
}

static void sample_all(void *arg)
{
    (void)arg;
    for (size_t way = 0; way < WAYS; way++)
        know_engine(open_engine(bench.urls[way], bench.route));
    for (size_t i = 0; i < bench.count; i++)
        for (size_t way = 0; way < WAYS; way++)
            if (is_measured(way))
                sample(way, i);
}

static void measure_route(const struct route *route)
{
    bench.route = route;
    run_fiber(sample_all, NULL);
    for (size_t way = 0; way < WAYS; way++) {
        const struct measured *measured = &bench.measured[way];
        if (!is_measured(way))
            continue;
        printf("%.3f ms of CPU a turn of %d tokens, %s, %s\n", median(measured->cpu, bench.count), TURN, route->name,
               ways[way].name);
        printf("%.3f   ms from its last token to the next request, %s, %s\n", median(measured->next, bench.count),
               route->name, ways[way].name);
        printf("%.3f   ms from its last token until it is in hand, %s, %s\n", median(measured->done, bench.count),
               route->name, ways[way].name);
    }
}

static double *room(void)
{
    double *values = calloc(bench.count, sizeof(*values));
    if (!values)
        give_up("room", "out of memory");
    return values;
}

void measure_streams(size_t count, const char *only)
{
    bench.count = count;
    for (size_t way = 0; way < WAYS; way++) {
        const struct engine_kind kind = {.tokens = TURN, .answer_after_ms = LATENCY_MS, .interval = ways[way].interval};
        bench.measured[way] = (struct measured){room(), room(), room()};
        bench.pids[way] = start_engine(&kind, bench.urls[way], sizeof(bench.urls[way]), &bench.times[way]);
    }
    open_worker(4);
    for (size_t i = 1; i < ROUTES; i++) /* llama.cpp's are not streamed */
        if (!only || strcmp(only, routes[i].name) == 0)
            measure_route(&routes[i]);
    for (size_t way = 0; way < WAYS; way++) {
        stop_engine(bench.pids[way]);
        free(bench.measured[way].cpu);
        free(bench.measured[way].next);
        free(bench.measured[way].done);
    }
}
