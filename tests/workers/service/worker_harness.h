/*
 * worker_harness.h - what stands around a real sluice-worker in a test: a broker (broker_side.h) and an
 * engine that accepts connections and never answers, so that a run job lasts until the test ends it.
 * Every wait is for an event and has a bound; past it the test fails.
 */
#ifndef SLUICE_TESTS_WORKERS_SERVICE_WORKER_HARNESS_H
#define SLUICE_TESTS_WORKERS_SERVICE_WORKER_HARNESS_H

#include "tests/workers/service/broker_side.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

enum { QUIET_MS = 300 };

/* ---- the engine ------------------------------------------------------------------------- */

static int engine_listener = -1;
static char silent_url[64];

static inline void engine_start(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    engine_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(engine_listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(engine_listener, 64), 0);
    assert_int_equal(getsockname(engine_listener, (struct sockaddr *)&address, &len), 0);
    snprintf(silent_url, sizeof(silent_url), "http://127.0.0.1:%d", ntohs(address.sin_port));
}

static inline void wait_readable(int fd, const char *what)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    if (poll(&item, 1, BOUND_MS) != 1)
        fail_msg("no %s within %d ms", what, BOUND_MS);
}

/* A job's request has arrived: the job is running, and stays so while this is open. */
static inline int engine_accept(void)
{
    wait_readable(engine_listener, "request to the engine");
    int fd = accept4(engine_listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Waits until the worker closed the connection. */
static inline void engine_see_close(int fd)
{
    char bytes[4096];
    ssize_t count;
    do {
        wait_readable(fd, "end of the request");
        count = recv(fd, bytes, sizeof(bytes), 0);
    } while (count > 0);
    close(fd);
}

/* Lets the job end: the engine is gone for good. */
static inline void engine_stop(int fd)
{
    if (engine_listener >= 0)
        close(engine_listener);
    engine_listener = -1;
    if (fd >= 0)
        close(fd);
}

/* ---- the worker ------------------------------------------------------------------------- */

struct worker_process {
    pid_t pid;
    int out;
    char said[512]; /* its first line */
};

static char directory[128];    /* TMPDIR and everything else of one test */
static pid_t workers_alive[8]; /* ended by worker_kill_all if a test fails half-way */

static const char *worker_program; /* in place of the real one */
static int worker_net = -1;        /* the network namespace of workers to come; -1: this one */

static inline void worker_exec(const char *const *argv, int out)
{
    if (worker_net >= 0 && setns(worker_net, CLONE_NEWNET) < 0)
        _exit(126);
    char program[512];
    const char *built = getenv("SLUICE_BINARY_DIR");
    snprintf(program, sizeof(program), "%s/workers/sluice-worker", built ? built : ".");
    if (worker_program)
        snprintf(program, sizeof(program), "%s", worker_program);
    setenv("TMPDIR", directory, 1);
    unsetenv("SLUICE_STORE");
    dup2(out, STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* unless --with-parent says otherwise */
    execv(program, (char *const *)argv);
    fprintf(stderr, "cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

/* Starts it with these further arguments (NULL at the end); does not wait. */
static inline struct worker_process worker_launch(const char *first, ...)
{
    char data[160];
    const char *argv[24] = {"sluice-worker", "--broker", front, "--data", data};
    int count = 5, ends[2];
    snprintf(data, sizeof(data), "%s/data", directory);
    va_list rest;
    va_start(rest, first);
    for (const char *at = first; at && count < 23; at = va_arg(rest, const char *))
        argv[count++] = at;
    va_end(rest);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct worker_process worker = {.pid = fork(), .out = ends[0]};
    if (worker.pid == 0)
        worker_exec(argv, ends[1]);
    close(ends[1]);
    for (int i = 0; i < 8; i++)
        if (workers_alive[i] == 0) {
            workers_alive[i] = worker.pid;
            break;
        }
    return worker;
}

/* Waits for its end, which must be near; its status. */
static inline int worker_reap(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 8; i++)
        if (workers_alive[i] == pid)
            workers_alive[i] = 0;
    return status;
}

static inline void worker_kill_all(void)
{
    for (int i = 0; i < 8; i++)
        if (workers_alive[i] > 0) {
            kill(workers_alive[i], SIGKILL);
            worker_reap(workers_alive[i]);
        }
}

/* Its first line; "" when it ended without one. */
static inline void worker_hear(struct worker_process *worker)
{
    size_t len = 0;
    while (len < sizeof(worker->said) - 1 && !memchr(worker->said, '\n', len)) {
        wait_readable(worker->out, "word of the worker");
        ssize_t count = read(worker->out, worker->said + len, 1);
        if (count <= 0)
            break;
        len += (size_t)count;
    }
    worker->said[len] = '\0';
}

#define worker_start(...)                                                                                              \
    ({                                                                                                                 \
        struct worker_process made_ = worker_launch(__VA_ARGS__, NULL);                                                \
        worker_hear(&made_);                                                                                           \
        assert_memory_equal(made_.said, "worker ready", 12);                                                           \
        made_;                                                                                                         \
    })

/* Its exit status, or 256 + signal. It is killed, and the test fails, if it does not end. */
static inline int worker_wait(struct worker_process *worker)
{
    struct pollfd item = {.fd = worker->out, .events = POLLIN};
    char bytes[4096];
    int64_t end = clock_ms() + BOUND_MS;
    do {
        if (poll(&item, 1, (int)(end - clock_ms())) < 1) {
            kill(worker->pid, SIGKILL);
            worker_reap(worker->pid);
            fail_msg("the worker did not end within %d ms", BOUND_MS);
        }
    } while (read(worker->out, bytes, sizeof(bytes)) > 0);
    int status = worker_reap(worker->pid);
    close(worker->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static inline int worker_stop(struct worker_process *worker)
{
    kill(worker->pid, SIGTERM);
    return worker_wait(worker);
}

/* ---- around each test ------------------------------------------------------------------- */

static inline int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
    if (!mkdtemp(directory) || chmod(directory, 0755) < 0)
        return -1;
    zmq = zmq_ctx_new();
    next_token = 100;
    broker_choose_port();
    broker_come_back();
    engine_start();
    return 0;
}

static inline int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about, (void)type, (void)where;
    return remove(path);
}

static inline int tear_down(void **state)
{
    (void)state;
    worker_kill_all();
    forget_heard();
    broker_die();
    engine_stop(-1);
    zmq_ctx_term(zmq);
    return nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
