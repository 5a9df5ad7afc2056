/*
 * bash.c - the agent with a shell: each reply holds one ```bash block, which is run, and its
 * output is the next turn. It ends when a reply says TASK_DONE on a line of its own (after
 * that reply's block was run, if it has one), or has no block once a command was run.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/agents/agents.h"
#include "workers/agents/dialogue.h"
#include "workers/agents/ends.h"
#include "workers/agents/fence.h"
#include "workers/fiber.h"
#include "workers/tools/shell.h"

enum { NO_SHELL = 127 /* as a shell says of a program it does not find */ };

static const char system_prompt[] =
    "You work in a Linux shell. Each of your replies holds exactly one command block:\n"
    "```bash\n"
    "the command\n"
    "```\n"
    "It is run by bash in /workspace, and you are told its exit status and its output. The shell "
    "keeps its directory and variables between blocks. When the task is finished, reply with "
    "the line " FENCE_DONE " and no block.";

static const char format_none[] =
    "There was no command in that reply. Reply with exactly one block:\n"
    "```bash\n"
    "the command\n"
    "```\n";

static const char format_open[] =
    "The block in that reply was not closed, so nothing was run. Reply "
    "with exactly one block that ends with a line ```.";

struct bash_agent {
    struct agent_run *run;
    struct dialogue dialogue;
    struct shell *shell;
    size_t commands, format_errors; /* errors: in a row */
};

/* ---- a command --------------------------------------------------------------------------- */

static void write_observation(const struct sandbox_output *output, struct buffer *ret)
{
    if (output->timed_out)
        buffer_printf(ret, "The command was stopped after %.1f seconds.\n", output->seconds);
    buffer_printf(ret, "exit status: %d\n", output->status);
    if (output->len > 0)
        buffer_printf(ret, "output:\n");
    else
        buffer_printf(ret, "no output\n");
    buffer_append(ret, output->text, output->len);
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
static int tell_output(struct bash_agent *agent, struct slice command,
                       const struct sandbox_output *output, bool is_last, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    AUTO_FREE char *tool = tool_name(command);
    write_observation(output, &text);
    if (!tool || text.failed)
        return fail_set(fail, -ENOMEM, "out of memory");
    if (!is_last)
        return dialogue_tell(&agent->dialogue, buffer_peek(&text), tool, output->status,
                             output->seconds, fail);
    return record_say(agent->run->record, "tool", buffer_peek(&text), tool, output->status)
               ? 0
               : fail_set(fail, -ENOMEM, "out of memory");
}

/* There was a bash for the command before: that there is none now is the agent's own doing. */
static int say_no_shell(struct sandbox_output *ret, struct fail *fail)
{
    *ret = (struct sandbox_output){.status = NO_SHELL};
    int len = asprintf(&ret->text, "no shell can be started: %s\n", fail->text);
    if (len < 0)
        return fail_set(fail, -ENOMEM, "out of memory");
    ret->len = ret->total = (uint64_t)len;
    return 0;
}

static int run_command(struct bash_agent *agent, struct slice command, bool is_last,
                       struct fail *fail)
{
    const struct task_limits *limits = &agent->run->task->limits;
    AUTO_FREE char *text = strndup((const char *)command.data, command.len);
    if (!text)
        return fail_set(fail, -ENOMEM, "out of memory");
    struct sandbox_output output = {0};
    int error = agent->shell ? 0 : shell_open(agent->run->sandbox, &agent->shell, fail);
    if (error == 0)
        error = shell_run(agent->shell, text, (int64_t)limits->command_s * 1000,
                          limits->output_bytes, &output, fail);
    if (error == -ENOEXEC && agent->commands > 0)
        error = say_no_shell(&output, fail);
    error = blame_inside(error, fail);
    if (error == 0) {
        agent->commands++;
        error = tell_output(agent, command, &output, is_last, fail);
    }
    free(output.text);
    return error;
}

/* ---- turns ------------------------------------------------------------------------------- */

/* What is wrong with a reply that should hold one command; NULL: nothing. */
static const char *format_error(const struct fence *fence, char text[256])
{
    if (fence->blocks == 1)
        return NULL;
    if (fence->blocks == 0)
        return fence->is_open ? format_open : format_none;
    snprintf(text, 256,
             "There were %zu blocks in that reply, so nothing was run. Reply with "
             "exactly one.",
             fence->blocks);
    return text;
}

enum step { STEP_MORE, STEP_DONE, STEP_FORMAT };

/* Acts on the last reply. */
static int take_step(struct bash_agent *agent, bool is_last, enum step *ret, struct fail *fail)
{
    struct fence fence = fence_read(agent->run->answer);
    char text[256];
    const char *wrong = format_error(&fence, text);
    bool is_end =
        fence.is_done || (agent->commands > 0 && !fence.is_open && !agent->dialogue.is_cut);
    *ret = STEP_MORE;
    if (fence.blocks == 0 && is_end) {
        *ret = STEP_DONE;
        return 0;
    }
    agent->format_errors = wrong ? agent->format_errors + 1 : 0;
    if (agent->format_errors > agent->run->task->max_format_errors) {
        *ret = STEP_FORMAT;
        return 0;
    }
    if (wrong)
        return is_last ? 0
                       : dialogue_tell(&agent->dialogue, slice_from_str(wrong), NULL, 0, 0, fail);
    *ret = fence.is_done ? STEP_DONE : STEP_MORE;
    return run_command(agent, fence.command, is_last || fence.is_done, fail);
}

static enum outcome take_turns(struct bash_agent *agent, struct fail *fail)
{
    struct agent_run *run = agent->run;
    for (uint64_t turn = 1; turn <= run->task->max_turns; turn++) {
        enum step step = STEP_MORE;
        int error = dialogue_sample(&agent->dialogue, fail);
        if (error == 0)
            error = take_step(agent, turn == run->task->max_turns, &step, fail);
        if (error < 0)
            return dialogue_end(&agent->dialogue, error, fail);
        if (step == STEP_DONE)
            return dialogue_end(&agent->dialogue, 0, fail);
        if (step == STEP_FORMAT)
            return agent_end_by(run, END_FORMAT, "%zu replies in a row without exactly one command block",
                             agent->format_errors);
    }
    return agent_end_by(run, END_TURNS, "all %llu are used up",
                     (unsigned long long)run->task->max_turns);
}

static enum outcome bash_run(struct agent_run *run)
{
    struct bash_agent agent = {.run = run};
    struct fail fail = {0};
    int error = dialogue_open(&agent.dialogue, run, system_prompt, &fail);
    enum outcome outcome =
        error < 0 ? dialogue_end(&agent.dialogue, error, &fail) : take_turns(&agent, &fail);
    shell_close(&agent.shell);
    dialogue_close(&agent.dialogue);
    return outcome;
}

const struct agent agent_bash = {
    .name = "bash",
    .doc = "a shell: one ```bash block a turn, until a reply says " FENCE_DONE,
    .needs_engine = true,
    .needs_sandbox = true,
    .run = bash_run,
};
