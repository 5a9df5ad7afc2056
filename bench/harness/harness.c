/*
 * What the proxy of a harness costs: calls of 4,000 tokens of prompt and 500 sampled ones through it, beside those of
 * the same engine without it, and proxies that are open beside each other in one process. The listeners are on the
 * loopback of this process, where a worker has them in sandboxes; the engine and the client are processes of their own.
 *
 *   bench_harness calls COUNT [TOKEN_US]   whole answers and streams, each directly and through the proxy; a stream's
 *                                          events come at once, or one each so many microseconds
 *   bench_harness sessions COUNT           so many open proxies, and then a turn in each
 * Prints "VALUE WHAT" lines.
 */
#include "bench/harness/harness.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/descriptors.h"
#include "schemas/task/task.h"
#include "workers/agents/proxy/http/server.h"
#include "workers/engines/engines.h"
#include "workers/runtime/fiber.h"

struct shared *shared;
static struct loop *loop;
static struct http *http;
static struct engines *engines;
static struct engine *engine;
static struct task *task;

_Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench_harness: %s: %.300s\n", what, why);
    exit(1);
}

/* ---- open proxies ---------------------------------------------------------------------------------- */

struct session {
    struct agent_run run;
    struct record record;
    struct proxy proxy;
    struct fiber *fiber;
    struct server *server;
    int port;
    bool is_over;
};

static struct session *sessions;
static size_t session_count, opened, closed;
static uint64_t prompted, made; /* tokens of prompts, and those of them that were made for them */

static int listen_at(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        give_up("a listener", "there is no more");
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void ignore(void *arg) { (void)arg; }

static void find_server(void *arg, const char *url, struct listener_found *ret)
{
    const struct session *session = arg;
    (void)url;
    ret->server = session->server;
}

static void count_tokens(const struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_node *node = &tree->nodes[i];
        prompted += node->is_sampled ? node->turn.prompt_tokens : 0;
        made += node->is_sampled ? 0 : node->ids.count;
    }
}

static void be_open(void *arg)
{
    struct session *session = arg;
    struct fail fail = {0};
    session->fiber = fiber_current();
    session->run = (struct agent_run){.task = task, .engine = engine, .record = &session->record};
    record_init(&session->record);
    if (proxy_open(&session->proxy, &session->run, &fail) < 0)
        give_up("a proxy", fail.text);
    struct http_listener *listener = listener_open(loop, &(struct listener_plan){.fd = listen_at(&session->port),
                                                                                 .connections_max = SERVER_CLIENTS_MAX,
                                                                                 .held_max = SERVER_HELD_MAX,
                                                                                 .find = find_server,
                                                                                 .arg = session});
    if (!listener)
        give_up("a listener", "out of memory");
    session->server = server_open(
        &(struct server_plan){.listener = listener, .proxy = &session->proxy, .changed = ignore});
    if (!session->server)
        give_up("a server", "out of memory");
    if (++opened == session_count)
        loop_stop(loop);
    while (!session->is_over)
        await_wake(-1);
    server_close(&session->server);
    listener_close(&listener);
    count_tokens(&session->proxy.tree);
    proxy_close(&session->proxy);
    record_finish(&session->record);
    free(session->run.answer);
}

static void on_closed(void *arg)
{
    (void)arg;
    if (++closed == session_count)
        loop_stop(loop);
}

static void open_sessions(size_t count)
{
    sessions = calloc(count, sizeof(*sessions));
    session_count = count;
    opened = closed = 0;
    for (size_t i = 0; i < count; i++)
        if (!sessions || !fiber_start(loop, be_open, on_closed, &sessions[i]))
            give_up("a session", "out of memory");
    loop_run(loop);
}

static void close_sessions(void)
{
    for (size_t i = 0; i < session_count; i++) {
        sessions[i].is_over = true;
        fiber_wake(sessions[i].fiber);
    }
    loop_run(loop);
    free(sessions);
}

/* ---- while a client is at work ------------------------------------------------------------------------ */

static void on_exit_of(void *arg, uint32_t events)
{
    (void)arg, (void)events;
    loop_stop(loop);
}

static void run_beside(pid_t client)
{
    int status;
    const int fd = (int)syscall(SYS_pidfd_open, client, 0);
    struct loop_watch *watch = loop_watch(loop, fd, EPOLLIN, on_exit_of, NULL);
    loop_run(loop);
    loop_unwatch(loop, &watch);
    close(fd);
    if (waitpid(client, &status, 0) != client || status != 0)
        give_up("a client", "it failed");
}

static pid_t start_client(size_t count, size_t turns, bool is_stream)
{
    int *ports = calloc(count, sizeof(*ports));
    for (size_t i = 0; i < count; i++)
        ports[i] = sessions[i].port;
    const pid_t pid = start_harness(ports, count, turns, is_stream);
    free(ports);
    return pid;
}

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double memory_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        sscanf(line, "VmRSS: %ld", &kib);
    if (status)
        fclose(status);
    return (double)kib;
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

static int by_value(const void *one, const void *other)
{
    const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return a < b ? -1 : a > b;
}

static double percentile_ms(uint32_t *values, size_t percent)
{
    qsort(values, shared->calls, sizeof(*values), by_value);
    return shared->calls ? values[(shared->calls - 1) * percent / 100] / 1e3 : 0;
}

static void print_calls(const char *what, bool is_stream)
{
    printf("%.4g %s, p50 ms\n", percentile_ms(shared->call_us, 50), what);
    printf("%.4g %s, p99 ms\n", percentile_ms(shared->call_us, 99), what);
    if (!is_stream)
        return;
    printf("%.4g %s: first text after the engine's, p50 ms\n", percentile_ms(shared->lag_us, 50), what);
    printf("%.4g %s: first text after the engine's, p99 ms\n", percentile_ms(shared->lag_us, 99), what);
}

static void measure_direct(int port, size_t count, bool is_stream, const char *what)
{
    shared->calls = 0;
    int status;
    waitpid(start_direct(port, count, is_stream), &status, 0);
    if (status != 0)
        give_up("a client", "it failed");
    print_calls(what, is_stream);
}

static void measure_proxy(size_t count, bool is_stream, const char *what)
{
    open_sessions(count / TURNS + 1);
    shared->calls = prompted = made = 0;
    const size_t requests = shared->requests;
    const double began_ms = cpu_ms();
    run_beside(start_client(session_count, TURNS, is_stream));
    const double used_ms = cpu_ms() - began_ms;
    print_calls(what, is_stream);
    printf("%.4g %s: CPU of the worker a call, ms\n", used_ms / (double)shared->calls, what);
    printf("%.4g %s: requests of its engine a call\n", (double)(shared->requests - requests) / (double)shared->calls,
           what);
    close_sessions();
    printf("%.4g %s: prompt tokens that stood already, %%\n", 100 - 100 * (double)made / (double)prompted, what);
}

static void measure_calls(int port, size_t count, uint32_t token_us)
{
    shared->token_us = token_us;
    if (token_us == 0)
        measure_direct(port, count, false, "the engine itself");
    if (token_us == 0)
        measure_proxy(count, false, "through the proxy");
    measure_direct(port, count, true,
                   token_us ? "the engine itself, a stream at its pace" : "the engine itself, streamed");
    measure_proxy(count, true, token_us ? "through the proxy, a stream at its pace" : "through the proxy, streamed");
}

/* ---- sessions -------------------------------------------------------------------------------------------- */

static void measure_sessions(size_t count)
{
    open_sessions(1); /* what all share is there */
    close_sessions();
    const double before_kib = memory_kib();
    open_sessions(count);
    printf("%.4g KiB of the worker for an open proxy, of %zu\n", (memory_kib() - before_kib) / (double)count, count);
    run_beside(start_client(count, 1, true));
    printf("%.4g KiB of the worker for a proxy with a turn of %d tokens, of %zu\n",
           (memory_kib() - before_kib) / (double)count, PROMPT + TURN - TURNS * TURN / 2, count);
    close_sessions();
}

/* ---- the worker --------------------------------------------------------------------------------------------- */

static void open_worker(const char *url)
{
    static const char json[] =
        "{\"task\": \"bench\", \"prompt\": \"-\", \"image\": \"host\", \"agent\": {\"kind\": \"harness\", "
        "\"command\": \"true\", \"max_turns\": 1000}, \"sampling\": {\"max_tokens\": 1000}}";
    const struct http_limits limits = {.connections_max = 64, .connect_ms = 10000, .silence_ms = 60000};
    struct fail fail = {0};
    struct refusal no = {0};
    descriptors_allow_all();
    loop = loop_create();
    http = loop ? http_create(loop, &limits, &fail) : NULL;
    engines = http ? engines_create(http) : NULL;
    engine = engines ? engines_get(engines, url) : NULL;
    task = task_parse(slice_from_str(json), &no);
    if (!engine || !task)
        give_up("the worker", task ? fail.text : no.text);
}

static void close_worker(void)
{
    engines_destroy(&engines);
    http_destroy(&http);
    loop_destroy(&loop);
    task_destroy(task);
}

int main(int argc, char **argv)
{
    char url[64];
    if (argc < 3)
        give_up("usage", "calls COUNT [TOKEN_US] or sessions COUNT");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t pid = start_engine(url, sizeof(url));
    open_worker(url);
    const size_t count = strtoull(argv[2], NULL, 10);
    if (strcmp(argv[1], "sessions") == 0)
        measure_sessions(count);
    else
        measure_calls(atoi(strrchr(url, ':') + 1), count, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
    close_worker();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}
