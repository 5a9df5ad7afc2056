/*
 * real_engine.h - a real llama.cpp server beside a test, with its own or another chat template. It
 * dies with the test. Where there is none (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set), tests
 * that need it say so and are skipped.
 */
#ifndef SLUICE_TESTS_WORKERS_ENGINES_REAL_ENGINE_H
#define SLUICE_TESTS_WORKERS_ENGINES_REAL_ENGINE_H

#include "tests/workers/engines/engine_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { REAL_ENGINE_START_MS = 60000 };

struct real_engine {
    pid_t pid;
    char url[64];
};

static inline bool real_engine_is_there(void)
{
    const char *program = getenv("SLUICE_LLAMA_SERVER"), *model = getenv("SLUICE_MODEL");
    return program && model && access(program, X_OK) == 0 && access(model, R_OK) == 0;
}

static inline void real_engine_or_skip(void)
{
    if (real_engine_is_there())
        return;
    print_message("skipped: no real engine (SLUICE_LLAMA_SERVER and SLUICE_MODEL are not set; "
                  "bash tests/run.sh sets them)\n");
    skip();
}

static inline int real_engine_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

/* template: a file of tests/workers/templates, or NULL for the model's own. */
static inline void real_engine_exec(int port, const char *template)
{
    char number[16], path[512] = "";
    snprintf(number, sizeof(number), "%d", port);
    if (template)
        snprintf(path, sizeof(path), "%s/tests/workers/templates/%s", source_dir(), template);
    const char *argv[] = {"llama-server",
                          "-m",
                          getenv("SLUICE_MODEL"),
                          "--host",
                          "127.0.0.1",
                          "--port",
                          number,
                          "-c",
                          "8192",
                          "-np",
                          "2",
                          "-t",
                          "1",
                          template ? "--jinja" : NULL,
                          "--chat-template-file",
                          path,
                          NULL};
    int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execv(getenv("SLUICE_LLAMA_SERVER"), (char *const *)argv);
    _exit(127);
}

static inline void real_engine_start_at(struct real_engine *engine, int port, const char *template)
{
    snprintf(engine->url, sizeof(engine->url), "http://127.0.0.1:%d", port);
    engine->pid = fork();
    assert_true(engine->pid >= 0);
    if (engine->pid == 0)
        real_engine_exec(port, template);
}

static inline void real_engine_start(struct real_engine *engine, const char *template)
{
    real_engine_start_at(engine, real_engine_port(), template);
}

static inline void real_engine_stop(struct real_engine *engine) { child_stop(&engine->pid); }

static inline bool real_engine_is_healthy(const char *base)
{
    char url[96];
    snprintf(url, sizeof(url), "%s/health", base);
    struct http_reply reply = {0};
    int error = http_request(fiber_world->http, url, NULL, 65536, &reply, NULL);
    buffer_finish(&reply.body);
    return error == 0 && reply.status == 200;
}

/* In a fiber; the argument is the struct real_engine. */
static inline void real_engine_await(void *arg)
{
    const struct real_engine *engine = arg;
    int64_t end_ms = clock_ms() + REAL_ENGINE_START_MS;
    while (!real_engine_is_healthy(engine->url)) {
        assert_true(clock_ms() < end_ms);
        await_sleep(100);
    }
}

#endif
