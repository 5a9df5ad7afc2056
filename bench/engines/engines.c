/*
 * Model calls: how many one worker thread keeps in flight, and what a turn costs it. The engine is a
 * process of its own that answers every call after the same time with a document made beforehand, in
 * the form of each dialect.
 *
 *   bench_engines calls COUNT SECONDS    so many fibers, each a call after the other, answered after 1 s
 *   bench_engines turns COUNT [ROUTE]    turns of 2,000 sampled tokens, one after the other: CPU of the
 *                                        call (send, receive, parse), of the record, and of its encoding;
 *                                        beside the floor, in turn: the same request and answer, of which
 *                                        each byte is looked at once
 *   bench_engines streams COUNT [ROUTE]  such turns, whole and streamed in turn: CPU of the call, and the time from
 *                                        the engine's last token to the next request and to the turn in hand
 *   bench_engines digits COUNT           a log-probability of 17 digits, read by us and by strtod
 * Prints "VALUE WHAT" lines.
 */
#include "bench/engines/engines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/json/json_number.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/engines.h"
#include "workers/engines/generate.h"
#include "workers/runtime/fiber.h"

enum { TURN = 2000, SHORT = 100, LATENCY_MS = 1000 };

_Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench_engines: %s: %s\n", what, why);
    exit(1);
}

/* ---- the worker's side ----------------------------------------------------------------------- */

struct loop *bench_loop;
static struct http *http;
static struct engines *engines;
struct tokens bench_prompt;
const struct task_sampling bench_sampling = {.temperature = 1, .top_p = 1, .seed = -1};

struct engine *open_engine(const char *url, const struct route *route)
{
    struct engine *engine = engines_get(engines, url);
    if (!engine)
        give_up("an engine", "out of memory");
    engine->dialect = route->dialect;
    engine->info.context_tokens = 1 << 20;
    engine->info.has_generate = route->has_generate;
    engine->info.vocabulary = 1 << 20;
    if (engine->info.ends.count == 0)
        tokens_append(&engine->info.ends, &(uint32_t){END_ID}, 1);
    return engine;
}

/* In a fiber: who it is, which is asked again at each call. */
void know_engine(void *arg)
{
    struct engine *engine = arg;
    struct fail fail = {0};
    engine->start = (struct engine_start){0}; /* that of the route before is another dialect's */
    if (engine->dialect->identify(engine, &engine->marks[0], &fail) < 0)
        give_up("who the engine is", fail.text);
    engine->mark_count = engine->number = 1;
    engine->has_start = engine->marks[0].has_start;
    engine->described.state = SINGLE_FLIGHT_DONE;
}

void open_worker(long connections)
{
    descriptors_allow_all();
    const struct http_limits limits = {.connections_max = connections, .connect_ms = 10000, .silence_ms = 60000};
    struct fail fail = {0};
    bench_loop = loop_create();
    http = bench_loop ? http_create(bench_loop, &limits, &fail) : NULL;
    engines = http ? engines_create(http) : NULL;
    if (!engines)
        give_up("the worker", fail.text);
    for (size_t i = 0; i < PROMPT; i++)
        tokens_append(&bench_prompt, &(uint32_t){id_at(i)}, 1);
}

static void stop_loop(void *arg)
{
    (void)arg;
    loop_stop(bench_loop);
}

void run_fiber(void (*run)(void *arg), void *arg)
{
    if (!fiber_start(bench_loop, run, stop_loop, arg))
        give_up("a fiber", strerror(errno));
    loop_run(bench_loop);
}

double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- calls in flight --------------------------------------------------------------------------- */

static struct {
    struct engine *engine;
    int64_t end_ms;
    size_t running, in_flight, most, done;
    double in_flight_ms; /* summed over all calls */
    int64_t slowest_ms;
} calls;

static void call_again(void *arg)
{
    (void)arg;
    while (clock_ms() < calls.end_ms) {
        struct generation got = {0};
        struct fail fail = {0};
        const int64_t began_ms = clock_ms();
        calls.in_flight++;
        calls.most = calls.in_flight > calls.most ? calls.in_flight : calls.most;
        if (engine_generate(calls.engine, &bench_prompt, &bench_sampling, SHORT, 0, &got, &fail) < 0)
            give_up("a call", fail.text);
        generation_finish(&got);
        calls.in_flight--;
        calls.done++;
        const int64_t took_ms = clock_ms() - began_ms;
        calls.in_flight_ms += (double)took_ms;
        calls.slowest_ms = took_ms > calls.slowest_ms ? took_ms : calls.slowest_ms;
    }
}

static void call_over(void *arg)
{
    (void)arg;
    if (--calls.running == 0)
        loop_stop(bench_loop);
}

static void measure_calls(size_t count, int seconds)
{
    char url[64];
    const struct engine_kind kind = {.tokens = SHORT, .answer_after_ms = LATENCY_MS};
    pid_t pid = start_engine(&kind, url, sizeof(url), NULL);
    open_worker((long)count);
    calls.engine = open_engine(url, &routes[1]);
    run_fiber(know_engine, calls.engine);
    const int64_t began_ms = clock_ms();
    calls.end_ms = began_ms + seconds * 1000;
    for (calls.running = 0; calls.running < count; calls.running++)
        if (!fiber_start(bench_loop, call_again, call_over, NULL))
            give_up("a fiber", strerror(errno));
    const double cpu_before = cpu_ms();
    loop_run(bench_loop);
    const double wall_ms = (double)(clock_ms() - began_ms), cpu = cpu_ms() - cpu_before;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%zu model calls in flight, most\n", calls.most);
    printf("%.0f model calls in flight, mean\n", calls.in_flight_ms / wall_ms);
    printf("%.0f model calls/s, each answered after %d ms\n", (double)calls.done / wall_ms * 1000, LATENCY_MS);
    printf("%.3f slowest model call, s\n", (double)calls.slowest_ms / 1000);
    printf("%.3f of a core\n", cpu / wall_ms);
    printf("%.3f ms of CPU a call: %d tokens of prompt, %d sampled\n", cpu / (double)calls.done, PROMPT, SHORT);
    printf("%.1f MiB resident\n", (double)usage.ru_maxrss / 1024);
    stop_engine(pid);
}

/* ---- a turn's cost ----------------------------------------------------------------------------- */

static struct {
    const struct route *route;
    const char *url;
    size_t count;
} turns;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static void record_turn(struct record *record, const struct generation *got)
{
    struct record_turn prompt_turn = {.role = "prompt"}, turn = {.role = "assistant"};
    snprintf(turn.finish, sizeof(turn.finish), "%s", got->finish);
    if (!record_start_trace(record, "") ||
        !record_append(record, &prompt_turn, bench_prompt.ids, NULL, bench_prompt.count, false) ||
        !record_append(record, &turn, got->sampled.ids, got->logprobs, got->sampled.count, true) ||
        !record_say_sampled(record, slice_from_str(got->text)))
        give_up("a record", "it is full");
}

/* The request's ids and the whole answer, without a word of either understood. */
static double floor_of_turn(struct engine *engine)
{
    AUTO_BUFFER body = {0}, answer = {0};
    struct fail fail = {0};
    const double start = cpu_ms();
    tokens_write(&bench_prompt, &body);
    AUTO_FREE char *text = buffer_take_str(&body);
    const struct call call = {
        .http = http, .base = engine->url, .path = turns.route->path, .text = text, .timeout_ms = 60000};
    if (!text || call_text(&call, &answer, &fail) < 0)
        give_up("the floor", fail.text);
    if (memchr(answer.data, 0, answer.len))
        give_up("the floor", "there is a NUL in it");
    return cpu_ms() - start;
}

static void run_turns(void *arg)
{
    (void)arg;
    struct engine *engine = open_engine(turns.url, turns.route);
    know_engine(engine);
    AUTO_FREE double *call = calloc(turns.count, sizeof(double)), *keep = calloc(turns.count, sizeof(double)),
                     *pack = calloc(turns.count, sizeof(double)), *floor = calloc(turns.count, sizeof(double));
    for (size_t i = 0; call && keep && pack && floor && i < turns.count; i++) {
        struct generation got = {0};
        struct record record;
        struct fail fail = {0};
        struct refusal no = {0};
        record_init(&record);
        AUTO_BUFFER bytes = {0};
        floor[i] = floor_of_turn(engine);
        const double start = cpu_ms();
        if (engine_generate(engine, &bench_prompt, &bench_sampling, TURN, 0, &got, &fail) < 0)
            give_up(turns.route->name, fail.text);
        const double called = cpu_ms();
        record_turn(&record, &got);
        const double kept = cpu_ms();
        if (!record_encode(&record, &bytes, &no))
            give_up("a record", no.text);
        pack[i] = cpu_ms() - kept;
        keep[i] = kept - called;
        call[i] = called - start;
        record_finish(&record);
        generation_finish(&got);
    }
    const double a = median(call, turns.count), b = median(keep, turns.count), c = median(pack, turns.count);
    printf("%.3f ms of CPU a turn of %d tokens, %s\n", a + b + c, TURN, turns.route->name);
    printf("%.3f   of it the call, %s\n%.3f   of it the record, %s\n%.3f   of it its encoding, %s\n", a,
           turns.route->name, b, turns.route->name, c, turns.route->name);
    const double least = median(floor, turns.count);
    printf("%.3f   floor: its request and answer, looked at once, %s\n%.2f   times that, %s\n", least,
           turns.route->name, (a + b + c) / least, turns.route->name);
}

static void measure_turns(size_t count, const char *only)
{
    char url[64];
    const struct engine_kind kind = {.tokens = TURN};
    pid_t pid = start_engine(&kind, url, sizeof(url), NULL);
    open_worker(4);
    for (size_t i = 0; i < ROUTES; i++) {
        if (only && strcmp(only, routes[i].name) != 0)
            continue;
        turns.route = &routes[i];
        turns.url = url;
        turns.count = count;
        run_fiber(run_turns, NULL);
    }
    stop_engine(pid);
}

/* ---- a log-probability's cost ------------------------------------------------------------------ */

enum { NUMBERS = 1000, NUMBER_SIZE = 32 };

static double read_by_strtod(const char *text) { return strtod(text, NULL); }

static double read_by_us(const char *text)
{
    struct json_number number;
    const uint8_t *at = (const uint8_t *)text;
    return json_number_read(at, at + strlen(text), &number) ? number.real : 0;
}

/* ns for each. */
static double time_numbers(double (*read)(const char *text), char (*texts)[NUMBER_SIZE], double *sum)
{
    const double start = cpu_ms();
    for (size_t i = 0; i < NUMBERS; i++)
        *sum += read(texts[i]);
    return (cpu_ms() - start) * 1e6 / NUMBERS;
}

static void measure_digits(size_t count)
{
    static char texts[NUMBERS][NUMBER_SIZE];
    double sum = 0;
    AUTO_FREE double *theirs = calloc(count, sizeof(double)), *ours = calloc(count, sizeof(double));
    for (size_t i = 0; i < NUMBERS; i++)
        snprintf(texts[i], sizeof(texts[i]), "%.17g", logprob_at(i));
    for (size_t i = 0; theirs && ours && i < count; i++) {
        theirs[i] = time_numbers(read_by_strtod, texts, &sum);
        ours[i] = time_numbers(read_by_us, texts, &sum);
    }
    const double a = median(theirs, count), b = median(ours, count);
    printf("%.1f ns a log-probability of 17 digits by strtod\n%.1f   by us\n%.2f   of strtod's\n", a, b, b / a);
    if (!(sum < 0))
        give_up("a log-probability", "they are not below 0");
}

static void close_worker(void)
{
    engines_destroy(&engines);
    http_destroy(&http);
    loop_destroy(&bench_loop);
    tokens_finish(&bench_prompt);
}

int main(int argc, char **argv)
{
    const size_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (argc > 3 && strcmp(argv[1], "calls") == 0 && count > 0 && count <= CONNECTIONS_MAX)
        measure_calls(count, atoi(argv[3]));
    else if (argc > 2 && strcmp(argv[1], "turns") == 0 && count > 0)
        measure_turns(count, argc > 3 ? argv[3] : NULL);
    else if (argc > 2 && strcmp(argv[1], "streams") == 0 && count > 0)
        measure_streams(count, argc > 3 ? argv[3] : NULL);
    else if (argc > 2 && strcmp(argv[1], "digits") == 0 && count > 0)
        measure_digits(count);
    else
        give_up("usage", "calls COUNT SECONDS | turns COUNT [ROUTE] | streams COUNT [ROUTE] | digits COUNT");
    close_worker();
    return 0;
}
