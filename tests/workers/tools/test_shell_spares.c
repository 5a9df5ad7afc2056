/* What a command past its time, and a new shell, leave running: other tools' processes, earlier jobs. */
#include "tests/workers/tools/shell_world.h"

#include "workers/tools/ipython/ipython.h"

enum { CELL_MS = 30000, OUTPUT_MAX = 65536 };

static struct sandbox *room;
static struct shell *shell;
static struct ipython *ipython;

static void expect_variable(void)
{
    struct ipython_result result;
    struct fail fail = {0};
    if (ipython_run(ipython, "print(x, child.poll())", CELL_MS, OUTPUT_MAX, &result, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_string_equal(result.text, "7 None\n");
    free(result.text);
}

/* Starts a job; the clock that tells old from new has moved on when this returns. */
static void start_job(void)
{
    expect(shell, "y=8; sleep 1000 & job=$!", 0, "");
    expect(shell, "read a b </proc/uptime; c=$a; while [ $a = $c ]; do read c b </proc/uptime; done", 0, "");
}

static void run_past_its_time(const char *command, int64_t timeout_ms)
{
    struct sandbox_output output = run(shell, command, timeout_ms, OUTPUT_MAX);
    assert_true(output.timed_out);
    free(output.text);
}

/* bash says first which of its jobs were killed. */
static void expect_at_the_end(const char *command, const char *text)
{
    struct sandbox_output output = run(shell, command, COMMAND_MS, OUTPUT_MAX);
    size_t len = strlen(text);
    if (output.len < len || strcmp(output.text + output.len - len, text) != 0)
        fail_msg("%s: %s", command, output.text);
    free(output.text);
}

/* In a sandbox with a kernel that holds a variable and a child, and with a shell. */
#define SPARES_TEST(name)                                                                                              \
    static void name##_inside(void);                                                                                   \
    FIBER_TEST(name)                                                                                                   \
    {                                                                                                                  \
        struct fail fail = {0};                                                                                        \
        struct ipython_result result;                                                                                  \
        room = open_host();                                                                                            \
        shell = open_shell(room);                                                                                      \
        if (ipython_open(room, &ipython, &fail) < 0 ||                                                                 \
            ipython_run(ipython, "import subprocess; x = 7; child = subprocess.Popen(['sleep', '1000'])", CELL_MS,     \
                        OUTPUT_MAX, &result, &fail) < 0)                                                               \
            fail_msg("%s", fail.text);                                                                                 \
        free(result.text);                                                                                             \
        name##_inside();                                                                                               \
        ipython_close(&ipython);                                                                                       \
        shell_close(&shell);                                                                                           \
        sandbox_close(&room);                                                                                          \
    }                                                                                                                  \
    static void name##_inside(void)

SPARES_TEST(a_command_past_its_time_leaves_kernels_and_earlier_jobs_running)
{
    start_job();
    run_past_its_time("setsid sleep 2000 & late=$!; sleep 2000", 500);
    expect_at_the_end("kill -0 $job && echo $y; kill -0 $late 2>/dev/null || echo gone", "8\ngone\n");
    expect_variable();
}

SPARES_TEST(a_command_that_waits_for_an_earlier_job_past_its_time_ends_with_that_job)
{
    start_job();
    run_past_its_time("wait", 500);
    expect_at_the_end("kill -0 $job 2>/dev/null || echo gone $y", "gone 8\n");
    expect_variable();
}

SPARES_TEST(a_new_shell_for_one_that_does_not_come_back_leaves_kernels_running)
{
    run_past_its_time("while :; do :; done", 500);
    expect(shell, "echo $y", 0, "\n");
    expect_variable();
}

SPARES_TEST(a_restart_of_the_shell_ends_its_jobs_and_leaves_kernels_running)
{
    struct fail fail = {0};
    expect(shell, "setsid sleep 1000 & echo $! >/workspace/job", 0, "");
    if (shell_restart(shell, &fail) < 0)
        fail_msg("%s", fail.text);
    expect(shell, "kill -0 $(cat /workspace/job) 2>/dev/null || echo gone", 0, "gone\n");
    expect_variable();
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_command_past_its_time_leaves_kernels_and_earlier_jobs_running),
        TEST(a_command_that_waits_for_an_earlier_job_past_its_time_ends_with_that_job),
        TEST(a_new_shell_for_one_that_does_not_come_back_leaves_kernels_running),
        TEST(a_restart_of_the_shell_ends_its_jobs_and_leaves_kernels_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    if (system("/usr/bin/python3 -c '' 2>/dev/null") != 0) {
        puts("skipped: there is no /usr/bin/python3");
        return 77;
    }
    return run_as_everyone(group);
}
