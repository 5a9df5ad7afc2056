/*
 * bash.c - the agent with a shell, in the form of mini-swe-agent: each reply holds one ```bash block,
 * which is run, and its exit status and output are the next turn. It ends when a command that exits
 * with 0 prints FENCE_SUBMIT as its first line (what follows is the answer), or when a reply has a
 * line FENCE_DONE (after that reply's block was run, if it has one). Unlike there, the shell keeps its
 * directory and variables.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/agents/kinds/agents.h"
#include "workers/agents/formats/code_block.h"
#include "workers/agents/conversation/turns.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/spent.h"
#include "workers/tools/bash/shell.h"

enum { NO_SHELL = 127 /* as a shell says of a program it does not find */ };

#define EXAMPLE "```bash\nthe command\n```\n"
#define HOW_TO_END "run " EXAMPLE_SUBMIT " in a block of its own"
#define EXAMPLE_SUBMIT "`echo " FENCE_SUBMIT "`"

static const char system_prompt[] =
    "You work on a task in a Linux shell, command by command. Each of your replies says what you "
    "are "
    "about to do and why, and then holds exactly one command block:\n" EXAMPLE
    "It is run by bash in /workspace, and you are told its exit status and its output. The shell "
    "keeps its directory and variables between blocks. When the task is finished, " HOW_TO_END
    "; what a command prints behind that line is taken as your answer. Nothing runs after it.";

static const char format_rest[] = "so nothing was run. Exactly one block is expected in each reply:\n" EXAMPLE
                                  "If the task is finished, " HOW_TO_END ".";

struct bash_agent {
    struct agent_run *run;
    struct turns turns;
    struct shell *shell;
    size_t commands;
};

/* ---- a command --------------------------------------------------------------------------- */

static void write_observation(const struct sandbox_output *output, const char *warning, struct buffer *ret)
{
    if (output->timed_out)
        buffer_printf(ret, "<exception>The command was stopped after %.1f seconds.</exception>\n", output->seconds);
    buffer_printf(ret, "<returncode>%d</returncode>\n<output>\n", output->status);
    buffer_append(ret, output->text, output->len);
    buffer_append_str(ret, "</output>");
    if (warning)
        buffer_printf(ret, "\n%s", warning);
}

/* The record's name of a tool call: "bash: ls -l". */
static char *tool_name(struct slice command)
{
    AUTO_BUFFER name = {0};
    buffer_append_str(&name, "bash: ");
    buffer_append(&name, command.data, command.len);
    return buffer_take_str(&name);
}

/* What the model sees; not bridged when no turn follows. */
static int tell_output(struct bash_agent *agent, struct slice command, const struct sandbox_output *output,
                       const char *warning, bool is_last, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    AUTO_FREE char *tool = tool_name(command);
    write_observation(output, warning, &text);
    if (!tool || text.failed)
        return fail_memory(fail);
    if (!is_last)
        return conversation_tell(&agent->turns.conversation, buffer_peek(&text), tool, output->status, output->seconds,
                                 fail);
    return record_say(agent->run->record, "tool", buffer_peek(&text), tool, output->status) ? 0 : fail_memory(fail);
}

/* There was a bash for the command before: that there is none now is the agent's own doing. */
static int say_no_shell(struct sandbox_output *ret, struct fail *fail)
{
    *ret = (struct sandbox_output){.status = NO_SHELL};
    int len = asprintf(&ret->text, "no shell can be started: %s\n", fail->text);
    if (len < 0)
        return fail_memory(fail);
    ret->len = ret->total = (uint64_t)len;
    return 0;
}

static int set_answer(struct agent_run *run, struct slice answer, struct fail *fail)
{
    char *text = strndup((const char *)answer.data, answer.len);
    if (!text)
        return fail_memory(fail);
    free(run->answer);
    run->answer = text;
    return 0;
}

/* The command's result: what it submits, or what it says beside those before. */
static int take_output(struct bash_agent *agent, struct slice command, const struct sandbox_output *output,
                       enum step *step, struct fail *fail)
{
    const struct tool_result result = {.text = output->text, .len = output->len, .status = output->status};
    const char *warning = NULL;
    struct slice answer = {0};
    agent->commands++;
    if (*step == STEP_MORE && output->status == 0 && code_block_submits(slice_of(output->text, output->len), &answer))
        *step = STEP_DONE;
    if (*step == STEP_MORE)
        *step = turns_notice(&agent->turns, "bash", command, &result, &warning);
    const bool is_last = agent->turns.is_last || *step != STEP_MORE;
    int error = tell_output(agent, command, output, warning, is_last, fail);
    /* The command is part of the answer that was: this comes last. */
    return error == 0 && answer.len > 0 && *step == STEP_DONE ? set_answer(agent->run, answer, fail) : error;
}

/* *step is DONE where the reply ends the rollout. */
static int run_command(struct bash_agent *agent, struct slice command, enum step *step, struct fail *fail)
{
    const struct task_limits *limits = &agent->run->task->limits;
    AUTO_FREE char *text = strndup((const char *)command.data, command.len);
    if (!text)
        return fail_memory(fail);
    struct sandbox_output output = {0};
    activity_tool("bash");
    activity_enter(PHASE_TOOL);
    int error = agent->shell ? 0 : shell_open(agent->run->sandbox, &agent->shell, fail);
    if (error == 0)
        error = shell_run(agent->shell, text, (int64_t)limits->command_s * 1000, limits->output_bytes, &output, fail);
    activity_leave(PHASE_TOOL);
    if (error == 0)
        spent_tool_call("bash", output.seconds);
    if (error == -ENOEXEC && agent->commands > 0)
        error = say_no_shell(&output, fail);
    error = blame_inside(error, fail);
    if (error == 0)
        error = take_output(agent, command, &output, step, fail);
    free(output.text);
    return error;
}

/* ---- turns ------------------------------------------------------------------------------- */

/* What is wrong with a reply that should hold one command; false: nothing. */
static bool write_wrong(const struct bash_agent *agent, const struct code_block *fence, struct buffer *ret)
{
    if (fence->blocks == 1 && !fence->open_line)
        return false;
    if (agent->turns.conversation.is_cut && fence->blocks == 0)
        buffer_append_str(ret, "That reply was cut off at the limit of its length, ");
    else if (fence->is_thinking)
        buffer_append_str(ret, "That reply ends within <think>, ");
    else if (fence->open_line)
        buffer_printf(ret, "The block that starts at line %zu of that reply is not closed, ", fence->open_line);
    else
        buffer_printf(ret, "That reply holds %zu blocks, ", fence->blocks);
    buffer_append_str(ret, format_rest);
    return true;
}

/* Acts on the last reply. */
static int take_step(void *arg, enum step *ret, struct fail *fail)
{
    struct bash_agent *agent = arg;
    const struct code_block fence = code_block_read(agent->run->answer);
    AUTO_BUFFER wrong = {0};
    *ret = fence.is_done ? STEP_DONE : STEP_MORE;
    if (fence.is_done && fence.blocks == 0)
        return 0;
    if (!write_wrong(agent, &fence, &wrong)) {
        turns_judge(&agent->turns, false);
        return run_command(agent, fence.command, ret, fail);
    }
    *ret = turns_judge(&agent->turns, true);
    return *ret == STEP_MORE && !agent->turns.is_last
               ? conversation_tell(&agent->turns.conversation, buffer_peek(&wrong), NULL, 0, 0, fail)
               : 0;
}

static enum outcome bash_run(struct agent_run *run)
{
    struct bash_agent agent = {.run = run, .turns = {.run = run}};
    struct fail fail = {0};
    struct conversation *conversation = &agent.turns.conversation;
    int error = conversation_open(conversation, run, system_prompt, &fail);
    enum outcome outcome = error < 0 ? conversation_end(conversation, error, &fail)
                                     : turns_run(&agent.turns, take_step, &agent);
    shell_close(&agent.shell);
    conversation_close(conversation);
    return outcome;
}

const struct agent agent_bash = {
    .name = "bash",
    .doc = "a shell: one ```bash block a turn, until a command prints " FENCE_SUBMIT " or a reply says " FENCE_DONE,
    .prompt = system_prompt,
    .needs_engine = true,
    .needs_sandbox = true,
    .run = bash_run,
};
