/*
 * engine_world.h - a scripted engine (tests/engines/scripted_engine.py) beside a loop, for tests. The
 * engine is a child process that dies with the test. What it was asked is in its log.
 */
#ifndef SLUICE_TESTS_WORKERS_ENGINES_ENGINE_WORLD_H
#define SLUICE_TESTS_WORKERS_ENGINES_ENGINE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/engines/engine.h"
#include "workers/engines/engines.h"
#include "workers/runtime/fiber.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { WORLD_SILENCE_MS = 2000 };

/* The scripted engine's special tokens; below them a token is a byte. */
enum { BYTE_START = 256, BYTE_END = 257, BYTE_BOS = 259 };

struct world {
    pid_t pid;
    char folder[64], log[96], url[64];
    struct loop *loop;
    bool owns_loop;
    struct http *http;
    struct engines *engines;
    int running; /* fibers */
};

static inline const char *source_dir(void)
{
    const char *dir = getenv("SLUICE_SOURCE_DIR");
    return dir ? dir : ".";
}

static inline void child_exec(int out, char *const argv[])
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

/* The port a new scripted engine says it listens on. */
static inline int child_start(pid_t *pid, char *const argv[])
{
    int pipes[2];
    char line[64] = "";
    int port = 0;
    assert_int_equal(pipe(pipes), 0);
    *pid = fork();
    if (*pid == 0)
        child_exec(pipes[1], argv);
    close(pipes[1]);
    FILE *out = fdopen(pipes[0], "r");
    assert_non_null(fgets(line, sizeof(line), out));
    fclose(out);
    assert_int_equal(sscanf(line, "ready port=%d", &port), 1);
    return port;
}

static inline void child_stop(pid_t *pid)
{
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

/* port 0: any. */
static inline void world_engine_start(struct world *world, const char *script, const char *proxy, int port)
{
    char program[512], path[96], number[16];
    snprintf(number, sizeof(number), "%d", port);
    snprintf(program, sizeof(program), "%s/tests/engines/scripted_engine.py", source_dir());
    snprintf(path, sizeof(path), "%s/script.json", world->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(script ? script : "{}", file);
    fclose(file);
    const char *argv[] = {"/usr/bin/python3",       program, "--script", path, "--log", world->log, "--port", number,
                          proxy ? "--proxy" : NULL, proxy,   NULL};
    snprintf(world->url, sizeof(world->url), "http://127.0.0.1:%d", child_start(&world->pid, (char *const *)argv));
}

/*
 * script: its JSON with ' for ". proxy: record this server instead (NULL: none). loop: to run on;
 * NULL: one of its own.
 */
static inline void world_open_on(struct world *world, struct loop *loop, const char *script, const char *proxy)
{
    *world = (struct world){.folder = "/tmp/sluice-engine-XXXXXX", .owns_loop = !loop};
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->log, sizeof(world->log), "%s/log.jsonl", world->folder);
    AUTO_FREE char *json = strdup(script ? script : "{}");
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    world_engine_start(world, json, proxy, 0);
    world->loop = loop ? loop : loop_create();
    assert_non_null(world->loop);
    struct fail fail = {0};
    const struct http_limits limits = {.connections_max = 64, .connect_ms = 2000, .silence_ms = WORLD_SILENCE_MS};
    world->http = http_create(world->loop, &limits, &fail);
    assert_non_null(world->http);
    world->engines = engines_create(world->http);
    assert_non_null(world->engines);
}

static inline void world_open(struct world *world, const char *script, const char *proxy)
{
    world_open_on(world, NULL, script, proxy);
}

/* The engine dies, and another starts in its place. */
static inline void world_engine_replace(struct world *world, const char *script)
{
    int port = atoi(strrchr(world->url, ':') + 1);
    AUTO_FREE char *json = strdup(script);
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    child_stop(&world->pid);
    world_engine_start(world, json, NULL, port);
}

static inline void world_close(struct world *world)
{
    engines_destroy(&world->engines);
    http_destroy(&world->http);
    if (world->owns_loop)
        loop_destroy(&world->loop);
    child_stop(&world->pid);
    char path[128];
    snprintf(path, sizeof(path), "%s/script.json", world->folder);
    unlink(path);
    unlink(world->log);
    rmdir(world->folder);
}

static inline struct engine *world_engine(struct world *world)
{
    struct engine *engine = engines_get(world->engines, world->url);
    assert_non_null(engine);
    return engine;
}

static struct world *fiber_world; /* of the fibers that run now */

static inline void fiber_ended(void *arg)
{
    (void)arg;
    if (--fiber_world->running == 0)
        loop_stop(fiber_world->loop);
}

/* Runs `run` once for each of `count` arguments of `size` bytes, at the same time, to the end. */
static inline void world_run(struct world *world, void (*run)(void *arg), void *args, size_t size, size_t count)
{
    fiber_world = world;
    for (size_t i = 0; i < count; i++) {
        assert_non_null(fiber_start(world->loop, run, fiber_ended, (char *)args + i * size));
        world->running++;
    }
    loop_run(world->loop);
}

/* The log so far: an array of {path, request, status, answer}. */
static inline json_t *world_log(const struct world *world)
{
    json_t *lines = json_array();
    FILE *file = fopen(world->log, "r");
    char *line = NULL;
    size_t size = 0;
    while (file && getline(&line, &size, file) > 0)
        json_array_append_new(lines, json_loads(line, JSON_ALLOW_NUL, NULL));
    free(line);
    if (file)
        fclose(file);
    return lines;
}

static inline size_t log_count(const json_t *log, const char *path)
{
    size_t count = 0, i;
    const json_t *line;
    json_array_foreach(log, i, line) count += strcmp(json_string_value(json_object_get(line, "path")), path) == 0;
    return count;
}

static inline void tokens_say(struct tokens *tokens, const char *text)
{
    for (; *text; text++)
        assert_true(tokens_append(tokens, &(uint32_t){(uint8_t)*text}, 1));
}

/* The ids of a ChatML prompt with one user's turn. */
static inline struct tokens prompt_of(const char *user)
{
    struct tokens prompt = {0};
    tokens_append(&prompt, &(uint32_t){BYTE_START}, 1);
    tokens_say(&prompt, "user\n");
    tokens_say(&prompt, user);
    tokens_append(&prompt, &(uint32_t){BYTE_END}, 1);
    tokens_say(&prompt, "\n");
    tokens_append(&prompt, &(uint32_t){BYTE_START}, 1);
    tokens_say(&prompt, "assistant\n");
    return prompt;
}

#endif
