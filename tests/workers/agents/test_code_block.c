/* A reply is read for its blocks, and a command's output for the line that submits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/agents/formats/code_block.h"

static void a_reply_is_read_for_its_blocks(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *command;
        size_t blocks;
        size_t open_line;
        bool is_done;
    } cases[] = {
        {"", NULL, 0, 0, false},
        {"no block", NULL, 0, 0, false},
        {"```bash\nls\n```", "ls", 1, 0, false},
        {"text\n  ```bash  \nls -l\npwd\n```\r\nmore", "ls -l\npwd", 1, 0, false},
        {"```sh\nls\n```", "ls", 1, 0, false},
        {"```bash\n```", "", 1, 0, false},
        {"```bash\n\n```", "", 1, 0, false},
        {"```python\nls\n```", NULL, 0, 0, false},
        {"```bash ls```", NULL, 0, 0, false},
        {"```bash\nls", NULL, 0, 1, false},
        {"```bash\nls\n```\n```bash\npwd\n```", "ls", 2, 0, false},
        {"```bash\nls\n```\n```bash\npwd", "ls", 1, 4, false},
        {"```bash\ncat <<E\n ``` \n```", "cat <<E", 1, 0, false},
        {"TASK_DONE", NULL, 0, 0, true},
        {"I am\n TASK_DONE \n", NULL, 0, 0, true},
        {"TASK_DONE now", NULL, 0, 0, false},
        {"```bash\nTASK_DONE\n```", "TASK_DONE", 1, 0, false},
        {"```bash\nls\n```\nTASK_DONE", "ls", 1, 0, true},
        {"```mswea_bash_command\nls\n```", "ls", 1, 0, false},
        {"<think>\n```bash\nrm\n```\n</think>\n```bash\nls\n```", "ls", 1, 0, false},
        {"<think>TASK_DONE</think>\nnot yet", NULL, 0, 0, false},
        {"or ```bash\nrm\n```?\n</think>\n\n```bash\nls", NULL, 0, 6, false},
        {"```bash\necho '<think>'\n<think>\n```", "echo '<think>'\n<think>", 1, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct code_block fence = code_block_read(cases[i].reply);
        if (fence.blocks != cases[i].blocks || fence.open_line != cases[i].open_line ||
            fence.is_done != cases[i].is_done || (cases[i].command && !slice_is(fence.command, cases[i].command)))
            fail_msg("%s: %zu blocks, the first '%.*s'", cases[i].reply, fence.blocks, SLICE_ARG(fence.command));
    }
}

static void a_commands_output_submits_by_its_first_line(void **state)
{
    (void)state;
    static const struct {
        const char *output, *answer;
    } rows[] = {
        {FENCE_SUBMIT, ""},
        {FENCE_SUBMIT "\n", ""},
        {"\n \n" FENCE_SUBMIT " \n42\n\nx", "42\n\nx"},
        {"", NULL},
        {"x\n" FENCE_SUBMIT, NULL},
        {FENCE_SUBMIT "x", NULL},
        {"echo " FENCE_SUBMIT, NULL},
        {"\n\n", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct slice answer;
        assert_int_equal(code_block_submits(slice_from_str(rows[i].output), &answer), rows[i].answer != NULL);
        assert_true(!rows[i].answer || slice_is(answer, rows[i].answer));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_read_for_its_blocks),
        cmocka_unit_test(a_commands_output_submits_by_its_first_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
