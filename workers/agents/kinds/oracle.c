/*
 * oracle.c - the agent that does what the task's solution says, and samples nothing: it shows that a task can be solved
 * and that its evaluator says so. Where there is no solution it gives the accepted answer (oracle_answer.h).
 *
 * The first command that fails is the last, and the rollout is scored as it is then, like any agent's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/agents/conversation/conversation.h"
#include "workers/agents/conversation/prompt.h"
#include "workers/agents/ends.h"
#include "workers/agents/kinds/agents.h"
#include "workers/agents/kinds/oracle_answer.h"
#include "workers/runtime/activity.h"
#include "workers/tools/bash/shell.h"

enum { TAIL_MAX = 400 };

struct oracle {
    struct agent_run *run;
    struct shell *shell;
    size_t made; /* commands */
    bool has_failed;
};

/* ---- its commands ---------------------------------------------------------------------------- */

static int say_command(struct oracle *oracle, const char *command, const struct sandbox_output *output,
                       struct fail *fail)
{
    char *tool = NULL;
    if (asprintf(&tool, "bash: %s", command) < 0)
        return fail_memory(fail);
    const bool good = record_say(oracle->run->record, "tool", slice_of(output->text, output->len), tool,
                                 output->status);
    free(tool);
    return good ? 0 : agent_record_full(fail);
}

static void end_badly(struct oracle *oracle, const struct sandbox_output *output)
{
    const bool is_signal = output->status > 255;
    const struct slice tail = text_tail_slice(slice_of(output->text, output->len), TAIL_MAX);
    oracle->has_failed = true;
    agent_end_by(oracle->run, END_SOLUTION, "command %zu of %zu %s %d: %.*s", oracle->made,
                 oracle->run->task->solution_command_count, is_signal ? "was killed by signal" : "exited with",
                 is_signal ? output->status - 256 : output->status, SLICE_ARG(tail));
}

/* By a bash of its own, so that it may `set -e` and exit, as a child of the shell,
 * which keeps what it leaves running. */
static char *bash_line(const char *command)
{
    AUTO_BUFFER line = {0};
    buffer_append_str(&line, "bash -c ");
    buffer_append_quoted(&line, command);
    return buffer_take_str(&line);
}

static int run_command(struct oracle *oracle, const char *command, struct fail *fail)
{
    const struct task_limits *limits = &oracle->run->task->limits;
    struct sandbox_output output = {0};
    AUTO_FREE char *line = bash_line(command);
    if (!line)
        return fail_memory(fail);
    activity_tool("bash");
    activity_enter(PHASE_TOOL);
    oracle->made++;
    int error = shell_run(oracle->shell, line, (int64_t)limits->run_s * 1000, limits->output_bytes, &output, fail);
    activity_leave(PHASE_TOOL);
    if (error == 0 && output.timed_out)
        error = -ETIMEDOUT;
    if (error == 0)
        error = say_command(oracle, command, &output, fail);
    if (error == 0 && output.status != 0)
        end_badly(oracle, &output);
    free(output.text);
    return error;
}

/* ---- all it does ----------------------------------------------------------------------------- */

static int work(struct oracle *oracle, struct fail *fail)
{
    struct agent_run *run = oracle->run;
    const struct task *task = run->task;
    if (!task->solution_file_count && !task->solution_command_count)
        return 0;
    int error = run->sandbox ? 0 : run->open_sandbox(run, fail);
    if (error == 0)
        error = run->put_files(run, task->solution_files, task->solution_file_count, fail);
    if (error == 0 && task->solution_command_count)
        error = shell_open(run->sandbox, &oracle->shell, fail);
    while (error == 0 && oracle->made < task->solution_command_count && !oracle->has_failed)
        error = run_command(oracle, task->solution_commands[oracle->made], fail);
    return error;
}

static int answer(struct agent_run *run, struct fail *fail)
{
    AUTO_BUFFER words = {0};
    oracle_answer(run->task, &words);
    if (words.len == 0 && !words.failed)
        return 0;
    free(run->answer);
    run->answer = buffer_take_str(&words);
    return run->answer && record_say(run->record, "assistant", slice_from_str(run->answer), NULL, 0)
               ? 0
               : agent_record_full(fail);
}

static enum outcome oracle_run(struct agent_run *run)
{
    struct oracle oracle = {.run = run};
    struct fail fail = {0};
    snprintf(run->record->agent, sizeof(run->record->agent), "oracle");
    int code = prompt_say(run) ? 0 : fail_memory(&fail);
    if (code == 0)
        code = work(&oracle, &fail);
    if (code == 0)
        code = answer(run, &fail);
    shell_close(&oracle.shell);
    if (code < 0)
        return run->has_open_failed ? agent_open_failed(run, code, &fail)
                                    : agent_failed(run, BLAME_AGENT, agent_what(run, code), &fail);
    if (oracle.has_failed)
        return end_rows[END_SOLUTION].outcome;
    return agent_end(run, OUTCOME_OK, "%zu files written, %zu commands run", run->task->solution_file_count,
                     oracle.made);
}

const struct agent agent_oracle = {
    .name = "oracle",
    .doc = "does what the task's solution says, or gives the accepted answer; samples nothing",
    .run = oracle_run,
};
