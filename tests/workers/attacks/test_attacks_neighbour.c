/* Two sandboxes of one worker: nothing that the one has open, by whatever name, is there for the other. */
#include "tests/workers/attacks/attack_world.h"
#include "workers/sandbox/requests.h"

#include <poll.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Which are all there for the one who has them: else no refusal would say anything. */
#define HAS_IT "done"
static const struct attempt own[] = {
    {"abstract", HAS_IT},
    {"kernel's-socket", HAS_IT},
    {"socket", HAS_IT},
    {"granted-socket", HAS_IT},
    {"port", HAS_IT},
    {"granted-port", HAS_IT},
    {"shared-file", HAS_IT},
    {"segment", HAS_IT},
    {"segment-by-number", HAS_IT},
    {"semaphores", HAS_IT},
    {"queue", HAS_IT},
    {"root", HAS_IT},
    {"directory", HAS_IT},
    {"descriptor", HAS_IT},
    {"memory", "done|EACCES"}, /* a kernel may forbid it to siblings */
    {"environment", HAS_IT},
    {"signal", HAS_IT},
    {"pidfd", HAS_IT},
    {"read", "done|EFAULT|EPERM"},
    {"write", "done|EFAULT|EPERM"},
    {"trace", "done|EPERM"},
};

#define NO_PROCESS                                                                                                     \
    {"root", "ENOENT"}, {"directory", "ENOENT"}, {"descriptor", "ENOENT"}, {"memory", "ENOENT"},                       \
        {"environment", "ENOENT"}, {"signal", "ESRCH"}, {"pidfd", "ESRCH"}, {"read", "ESRCH"}, {"write", "ESRCH"},     \
    {                                                                                                                  \
        "trace", "ESRCH"                                                                                               \
    }

static const struct attempt others[] = {
    {"abstract", "ECONNREFUSED"}, {"kernel's-socket", "ENOENT"}, {"socket", "ENOENT"},
    {"granted-socket", "ENOENT"}, {"port", "ECONNREFUSED"},      {"granted-port", "ECONNREFUSED"},
    {"shared-file", "ENOENT"},    {"segment", "ENOENT"},         {"segment-by-number", "EINVAL"},
    {"semaphores", "ENOENT"},     {"queue", "ENOENT"},           NO_PROCESS,
};

/* What it listens on and has open, as attack_serve tells. */
struct server {
    int pid, port, segment, descriptor;
};

static struct server start_server(struct sandbox *sandbox)
{
    const char *argv[] = {attack_path, "serve", NULL};
    char line[256] = "";
    int ends[2];
    pid_t pid;
    struct server server;
    struct fail fail = {0};
    assert_int_equal(pipe(ends), 0);
    struct sandbox_exec exec = {.argv = argv, .fds = &ends[1], .targets = (int[]){1}, .fd_count = 1};
    assert_int_equal(sandbox_start(sandbox, &exec, &pid, &fail), 0);
    close(ends[1]);
    assert_int_equal(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, COMMAND_MS), 1);
    assert_true(read(ends[0], line, sizeof(line) - 1) > 0);
    close(ends[0]);
    if (sscanf(line, "serving %d %d %d %d", &server.pid, &server.port, &server.segment, &server.descriptor) != 4)
        fail_msg("%s", line);
    return server;
}

enum { GRANT_PORT = 4711 };

static struct sandbox *open_with_grants(void)
{
    static const struct listener listeners[] = {{"db", false, 0}, {"pip", true, GRANT_PORT}};
    struct sandbox_plan plan = host_plan();
    plan.listeners = listeners;
    plan.listener_count = 2;
    return open_attacked(&plan);
}

static void expect_reach(struct sandbox *sandbox, const struct server *server, int pid, const struct attempt *rows,
                         size_t count)
{
    char words[128];
    snprintf(words, sizeof(words), "neighbour %d %d %d %d %d", pid, server->port, server->segment, server->descriptor,
             GRANT_PORT);
    expect_attempts(sandbox, words, rows, count);
}

FIBER_TEST(what_one_sandbox_has_open_is_out_of_anothers_reach)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *owner = open_with_grants();
    const struct server server = start_server(owner);
    const pid_t outside = find_child(find_first_process(), "attack");
    expect_reach(owner, &server, server.pid, own, ROWS(own));
    const struct server again = start_server(owner); /* the end of a command ends all that runs */
    struct sandbox *other = open_attacked(&plan);
    const pid_t later = find_child(find_first_process(), "attack");
    expect_reach(other, &again, later, others, ROWS(others));
    expect_reach(other, &again, outside, others, ROWS(others));
    expect_works(other);
    expect_works(owner);
    sandbox_close(&other);
    sandbox_close(&owner);
}

/* The pids are those of the host: inside there are none of these numbers. */
FIBER_TEST(processes_of_the_worker_are_out_of_reach)
{
    static const struct attempt rows[] = {NO_PROCESS, NO_PROCESS, NO_PROCESS};
    char words[64];
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = open_attacked(&plan);
    const pid_t spawner_at = find_child(getpid(), "sluice-spawner");
    snprintf(words, sizeof(words), "outside %d %d %d", getpid(), spawner_at, find_first_process());
    expect_attempts(sandbox, words, rows, ROWS(rows));
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

/* A place that all of the worker's sandboxes have, and each for itself. */
FIBER_TEST(the_tools_directories_are_each_sandboxes_own)
{
    char modes[64];
    struct sandbox *one = open_host(), *other = open_host();
    expect_status(one,
                  "cd /run/sluice/out && echo secret > kernel-1.json && mkfifo kernel-2 && ln -s "
                  "kernel-1.json k",
                  0);
    expect_text(other, "ls -A /run/sluice /run/sluice/out | grep -c kernel", "0\n");
    snprintf(modes, sizeof(modes), "755 %u\n700 %u\nRead-only\n", inside_uid(), inside_uid());
    expect_text(other, "stat -c '%a %u' /run/sluice /run/sluice/out; mkdir /run/sluice/x 2>&1 | grep -o Read-only",
                modes);
    expect_text(other, "ln /run/sluice/out/../../../run/sluice/out/kernel-1.json /tmp/x 2>/dev/null; echo $?", "1\n");
    sandbox_close(&one);
    sandbox_close(&other);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_one_sandbox_has_open_is_out_of_anothers_reach),
        TEST(processes_of_the_worker_are_out_of_reach),
        TEST(the_tools_directories_are_each_sandboxes_own),
    };
    return cmocka_run_group_tests_name("attacks on neighbours", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
