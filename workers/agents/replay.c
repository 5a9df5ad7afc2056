/*
 * replay.c - the agent that makes the calls of agent.script and samples nothing: for tests, for
 * looking into a task, and for showing the service without an engine. A call that is refused is
 * recorded and the next one made.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "workers/agents/agents.h"
#include "workers/agents/calling.h"
#include "workers/agents/dialogue.h"

static bool say_messages(struct agent_run *run)
{
    const struct task *task = run->task;
    for (size_t i = 0; i < task->message_count; i++)
        if (!record_say(run->record, task->messages[i].role,
                        slice_from_str(task->messages[i].content), NULL, 0))
            return false;
    return true;
}

static int make_call(struct toolbox *box, struct agent_run *run, const struct task_call *call,
                     bool *ret_final, struct fail *fail)
{
    struct tool_result result;
    const struct form_call made = {call->tool, json_loads(call->arguments, 0, NULL)};
    if (!made.arguments)
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = calling_make(box, run, NULL, &made, &result, fail);
    json_decref(made.arguments);
    if (error < 0)
        return error;
    *ret_final = result.is_final;
    if (result.is_final) {
        free(run->answer);
        run->answer = take_ptr(&result.answer);
    }
    tool_result_finish(&result);
    return 0;
}

static enum outcome replay(struct toolbox *box, struct agent_run *run)
{
    const struct task *task = run->task;
    struct fail fail = {0};
    bool is_final = false;
    size_t made = 0;
    snprintf(run->record->agent, sizeof(run->record->agent), "%s", task->agent_kind);
    int error = say_messages(run) ? 0 : fail_set(&fail, -ENOMEM, "out of memory");
    while (error == 0 && made < task->script_count && !is_final)
        error = make_call(box, run, &task->script[made++], &is_final, &fail);
    if (error < 0)
        return agent_failed(run, BLAME_AGENT, agent_what(run, error), &fail);
    return agent_end(run, OUTCOME_OK, "%zu of %zu calls made", made, task->script_count);
}

static enum outcome replay_run(struct agent_run *run)
{
    struct toolbox box;
    enum outcome outcome;
    if (calling_open(&box, run, &outcome) == 0)
        outcome = replay(&box, run);
    toolbox_close(&box);
    return outcome;
}

const struct agent agent_replay = {
    .name = "replay",
    .doc = "makes the calls of agent.script; samples nothing",
    .needs_sandbox = true,
    .run = replay_run,
};
