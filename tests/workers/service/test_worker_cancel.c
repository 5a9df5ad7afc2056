/*
 * A cancel reaches everything: the model's call, the tool's processes, the sandbox, the threads
 * that pack and unpack. Seen from outside a real worker, with real sandboxes and an engine.
 */
#include "tests/workers/service/worker_harness.h"

#include <ctype.h>
#include <dirent.h>

#include "tests/workers/engines/engine_world.h"

#define BASH(command) "```bash\\n" command "\\n```"
#define COUNTED_MB "60" /* of a layer, so that packing and unpacking it can be caught at work */

static struct world engine;
static struct worker_process worker;

/* ---- what is seen from outside ------------------------------------------------------------ */

static pid_t parent_of(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    const char *end = strrchr(line, ')');
    int parent = 0;
    char state;
    return end && sscanf(end + 1, " %c %d", &state, &parent) == 2 && state != 'Z' ? parent : 0;
}

enum {
    IDLE = 2
}; /* processes of a worker without a sandbox: its spawner and, after the first one, the next one's first */

/* Every process the worker made, through any number of others. */
static int count_processes(void)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while ((entry = readdir(proc))) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        pid_t at = pid ? parent_of(pid) : 0;
        while (at > 1 && at != worker.pid)
            at = parent_of(at);
        count += at == worker.pid;
    }
    closedir(proc);
    return count;
}

static void wait_for_processes(int at_least, int at_most)
{
    int count = -1;
    for (int64_t end = clock_ms() + BOUND_MS; clock_ms() < end; hear(20))
        if ((count = count_processes()) >= at_least && count <= at_most)
            return;
    fail_msg("%d processes, not %d to %d", count, at_least, at_most);
}

/* Whether a directory of the worker's, or one below it, has an entry with this in its name. */
static bool dir_has(const char *name, const char *part)
{
    char path[192];
    snprintf(path, sizeof(path), "%s/data/%s", directory, name);
    DIR *dir = opendir(path);
    bool has = false;
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        has |= strstr(entry->d_name, part) != NULL;
    if (dir)
        closedir(dir);
    return has;
}

static void wait_for_file(const char *dir, const char *part, bool there)
{
    for (int64_t end = clock_ms() + BOUND_MS; dir_has(dir, part) != there; hear(1))
        if (clock_ms() > end)
            fail_msg("%s/*%s* is %s after %d ms", dir, part, there ? "not there" : "still there", BOUND_MS);
}

static bool engine_was_left(void)
{
    json_t *log = world_log(&engine);
    const json_t *last = json_array_get(log, json_array_size(log) - 1);
    const char *answer = json_string_value(json_object_get(last, "answer"));
    bool left = answer && strcmp(answer, "gone") == 0;
    json_decref(log);
    return left;
}

static bool engine_is_asked(const char *path)
{
    json_t *log = world_log(&engine);
    bool asked = log_count(log, path) > 0;
    json_decref(log);
    return asked;
}

/* ---- around each test --------------------------------------------------------------------- */

static void start_worker(const char *stage, const char *script)
{
    world_open(&engine, script, NULL);
    worker = worker_start(stage, "--slots", "1");
    open_lane(1);
}

/* The only slot is free, nothing was answered for the cancelled job, and nothing is left of it. */
static void expect_nothing_left(const char *cancelled)
{
    char next[64];
    snprintf(next, sizeof(next), "%.*s:next", (int)strcspn(cancelled, ":"), cancelled);
    strcat(next, strchr(cancelled, '/') ? "/0" : "");
    int64_t began_ms = clock_ms();
    uint64_t token = say_start(next);
    hear_result(next); /* had the cancelled one answered, it would come before */
    assert_true(clock_ms() - began_ms < 5000);
    say_ack(next, token);
    hear_beat_until(heard.beat.jobs.count == 0);
    wait_for_processes(IDLE - 1, IDLE);
    assert_int_equal(worker_stop(&worker), 0);
    world_close(&engine);
}

static uint64_t start(const char *job, const char *task) { return say_start_as(job, ++next_token, task, engine.url); }

/* ---- the model's call --------------------------------------------------------------------- */

static void a_cancel_closes_the_models_call_while_it_generates(void **state)
{
    (void)state;
    start_worker("run", "{'rules': [{'fault': 'hang'}]}");
    uint64_t token = start("run:g/0", chat_task);
    for (int64_t end = clock_ms() + BOUND_MS; !engine_is_asked("/completion"); hear(20))
        assert_true(clock_ms() < end);
    int64_t began_ms = clock_ms();
    say_cancel("run:g/0", token);
    while (!engine_was_left()) {
        assert_true(clock_ms() - began_ms < 3000);
        hear(5);
    }
    say_cancel("run:g/0", token); /* once more, and one that never was */
    say_cancel("run:g/7", 0);
    expect_nothing_left("run:g/0");
}

static void a_cancel_reaches_a_probe_of_the_engine(void **state)
{
    (void)state;
    start_worker("run", "{'rules': [{'path': '/props', 'fault': 'hang'}]}");
    uint64_t token = start("run:g/0", chat_task);
    for (int64_t end = clock_ms() + BOUND_MS; !engine_is_asked("/props"); hear(20))
        assert_true(clock_ms() < end);
    say_cancel("run:g/0", token);
    for (int64_t end = clock_ms() + BOUND_MS; !engine_was_left(); hear(20))
        assert_true(clock_ms() < end);
    expect_nothing_left("run:g/0");
}

/* ---- processes ------------------------------------------------------------------------------ */

#define MANY "sleep 1000 & setsid sleep 1000 & (sleep 1000 &); sleep 1000"

static void a_cancel_ends_a_tool_with_all_it_started(void **state)
{
    (void)state;
    start_worker("run", "{'rules': [{'reply': '" BASH(MANY) "'}]}");
    uint64_t token = start("run:g/0", "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"},"
                                      "\"limits\":{\"command_s\":600}}");
    wait_for_processes(IDLE + 1 + 4, 99); /* pid 1, and what sleeps */
    say_cancel("run:g/0", token);
    wait_for_processes(IDLE, IDLE);
    expect_nothing_left("run:g/0");
}

static void a_cancel_ends_a_set_up(void **state)
{
    (void)state;
    start_worker("init", NULL);
    uint64_t token = start("init:g", "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"" MANY "\"]}");
    wait_for_processes(IDLE + 1 + 4, 99);
    say_cancel("init:g", token);
    wait_for_processes(IDLE, IDLE);
    expect_nothing_left("init:g");
}

static void a_cancel_ends_an_evaluator(void **state)
{
    (void)state;
    start_worker("eval", NULL);
    uint64_t token = start("eval:g/0", "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"command\","
                                       "\"command\":\"" MANY "\",\"files\":{\"a\":\"x\"}},"
                                       "\"limits\":{\"command_s\":600}}");
    wait_for_processes(IDLE + 1 + 4, 99);
    say_cancel("eval:g/0", token);
    wait_for_processes(IDLE, IDLE);
    expect_nothing_left("eval:g/0");
    assert_false(dir_has("cache", ".tmp."));
}

static void cancels_while_sandboxes_open_leave_none_behind(void **state)
{
    (void)state;
    start_worker("run", "{'rules': [{'reply': '" BASH("sleep 1000") "'}]}");
    for (int i = 0; i < 60; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%d", i);
        uint64_t token = start(job, "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"}}");
        hear(i % 12); /* so that each finds it a little further on */
        say_cancel(job, token);
    }
    wait_for_processes(IDLE, IDLE);
    expect_nothing_left("run:g/0");
}

/* ---- packing and unpacking ------------------------------------------------------------------ */

static const char large_task[] = "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"head -c " COUNTED_MB
                                 "M /dev/urandom > f\"],"
                                 "\"limits\":{\"disk_mib\":512,\"memory_mib\":512}}";

static void a_cancel_stops_the_thread_that_packs_a_layer(void **state)
{
    (void)state;
    start_worker("init", NULL);
    uint64_t token = start("init:g", large_task);
    wait_for_file("store", ".packing.", true);
    say_cancel("init:g", token);
    wait_for_file("store", ".packing.", false);
    for (int i = 0; i < 256; i++) {
        char place[4];
        snprintf(place, sizeof(place), "%02x", (unsigned)i);
        assert_false(dir_has("store", place)); /* it was not finished after all */
    }
    expect_nothing_left("init:g");
}

static void a_cancel_stops_the_thread_that_unpacks_a_layer(void **state)
{
    (void)state;
    start_worker("init", NULL);
    uint64_t token = start("init:g", large_task);
    char layer[81];
    const struct msg_job_result *result = hear_result("init:g");
    if (!result->has_layer_digest)
        fail_msg("no layer: %.*s", SLICE_ARG(result->detail));
    snprintf(layer, sizeof(layer), "%.*s", SLICE_ARG(result->layer_digest));
    say_ack("init:g", token);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
    broker_die();
    broker_come_back(); /* nothing of the first worker's is heard any more */
    worker = worker_start("run", "--slots", "1");
    open_lane(2);
    token = say_start_on("run:g/0", ++next_token, "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"}}",
                         engine.url, layer);
    wait_for_file("cache", ".tmp.", true);
    say_cancel("run:g/0", token);
    wait_for_file("cache", ".tmp.", false);
    assert_false(dir_has("cache", layer + strlen("sha256:"))); /* half a layer is none */
    expect_nothing_left("run:g/0");
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(a_cancel_closes_the_models_call_while_it_generates),
        TEST(a_cancel_reaches_a_probe_of_the_engine),
        TEST(a_cancel_ends_a_tool_with_all_it_started),
        TEST(a_cancel_ends_a_set_up),
        TEST(a_cancel_ends_an_evaluator),
        TEST(cancels_while_sandboxes_open_leave_none_behind),
        TEST(a_cancel_stops_the_thread_that_packs_a_layer),
        TEST(a_cancel_stops_the_thread_that_unpacks_a_layer),
    };
    return cmocka_run_group_tests_name("worker_cancel", tests, NULL, NULL);
}
