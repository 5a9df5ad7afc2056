/*
 * The first process of a sandbox has a copy of a terminal that it hands out until it closes it, and when
 * the last copy is closed, bash is told. Here it is slow to (spawners/hangup.c).
 */
#include "tests/workers/tools/shell_world.h"
#include "workers/sandbox/embedded/program.h"

PROGRAM_BYTES(spawner_program, OWN_SPAWNER)

static int run_on_terminal(struct shell *shell, const char *text)
{
    struct shell_command command = {.text = text, .timeout_ms = 20000, .output_max = 1000, .tty = true};
    struct sandbox_output output;
    struct fail fail = {0};
    if (shell_run_as(shell, &command, &output, &fail) < 0)
        fail_msg("%s: %s", text, fail.text);
    free(output.text);
    return output.status;
}

FIBER_TEST(a_terminal_ends_with_its_command_and_not_in_the_next_one)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    assert_int_equal(run_on_terminal(shell, "true"), 0);
    expect(shell, "echo here", 0, "here\n");
    assert_int_equal(run_on_terminal(shell, "true"), 0);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_terminal_ends_with_its_command_and_not_in_the_next_one, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("hangup", tests, NULL, NULL);
}
