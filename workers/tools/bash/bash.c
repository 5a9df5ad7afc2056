/* bash.c - the tool `bash`: one shell (shell.h) a rollout, kept from call to call. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/tools/arguments.h"
#include "workers/tools/bash/shell.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

static int bash_open(struct toolbox *box, void **ret_state, struct fail *fail)
{
    return shell_open(box->sandbox, (struct shell **)ret_state, fail);
}

static void bash_close(void *state)
{
    struct shell *shell = state;
    shell_close(&shell);
}

/* What a person would see, and a last line where there is more to say. */
static int say_output(const struct sandbox_output *output, struct tool_result *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    buffer_append(&text, output->text, output->len);
    const bool wants_line = output->timed_out || output->status != 0;
    if (wants_line && output->len > 0 && output->text[output->len - 1] != '\n')
        buffer_append_str(&text, "\n");
    if (output->timed_out)
        buffer_printf(&text, "[stopped after %.1f seconds]", output->seconds);
    else if (output->status > 255)
        buffer_printf(&text, "killed by signal %d", output->status - 256);
    else if (output->status != 0)
        buffer_printf(&text, "exit status: %d", output->status);
    else if (output->len == 0)
        buffer_append_str(&text, "(no output)");
    ret->status = output->status;
    ret->total = output->total;
    ret->timed_out = output->timed_out;
    ret->is_error = wants_line;
    return text.failed ? fail_memory(fail) : tool_say_bytes(ret, buffer_peek(&text), fail);
}

static int run_command(struct toolbox *box, struct shell *shell, const json_t *arguments, struct tool_result *ret,
                       struct fail *fail)
{
    struct sandbox_output output = {0};
    const int64_t limit_s = (int64_t)box->limits->command_s;
    const int64_t timeout_s = tool_integer(arguments, "timeout_s", limit_s);
    struct shell_command command = {.text = tool_string(arguments, "command"),
                                    .timeout_ms = (timeout_s < limit_s ? timeout_s : limit_s) * 1000,
                                    .output_max = box->limits->output_bytes,
                                    .tty = tool_boolean(arguments, "tty"),
                                    .on_output = box->on_output,
                                    .on_output_arg = box->on_output_arg};
    int code = shell_run_as(shell, &command, &output, fail);
    if (code == 0)
        code = say_output(&output, ret, fail);
    free(output.text);
    return code;
}

/* There was a bash when it was opened: that it is gone is the agent's own doing. */
static int answer_gone(struct tool_result *ret, struct fail *fail)
{
    char words[sizeof(fail->text)];
    snprintf(words, sizeof(words), "%s", fail->text);
    return tool_refuse(ret, fail, "bash: no shell can be started: %s.", words);
}

static int bash_call(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret,
                     struct fail *fail)
{
    const bool restart = tool_boolean(arguments, "restart");
    const bool has_command = tool_string(arguments, "command");
    int code = restart ? shell_restart(state, fail) : 0;
    if (code == 0 && has_command)
        code = run_command(box, state, arguments, ret, fail);
    if (code == -ENOEXEC)
        return answer_gone(ret, fail);
    if (code < 0 || has_command)
        return code;
    return restart ? tool_say(ret, fail, "A new shell runs in %s.", sandbox_workdir(box->sandbox))
                   : tool_refuse(ret, fail, "bash: give a command, or restart.");
}

const struct tool tool_bash = {
    .name = "bash",
    .doc = "Runs a command in a bash shell that keeps its directory, variables, functions and "
           "background jobs from call to call. Its standard input is empty.",
    .needs_sandbox = true,
    .arguments = {{"command", TOOL_STRING, false, 1, 262144, NULL, "Any bash text."},
                  {"timeout_s", TOOL_INTEGER, false, 1, 86400, NULL,
                   "Seconds after which the command and all it started is killed."},
                  {"tty", TOOL_BOOLEAN, false, 0, 0, NULL, "Run it on a terminal, for programs that ask for one."},
                  {"restart", TOOL_BOOLEAN, false, 0, 0, NULL,
                   "Kill the shell and all it runs, background jobs too, and start a new one before "
                   "the command, if there is one."}},
    .open = bash_open,
    .call = bash_call,
    .close = bash_close,
};
