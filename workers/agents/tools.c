/*
 * tools.c - the agent that calls functions: a reply may hold several calls, which are made one
 * after the other, and their results are the next turn. It ends with a call of submit, or with a
 * reply without calls.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "workers/agents/agents.h"
#include "workers/agents/calling.h"
#include "workers/agents/dialogue.h"
#include "workers/agents/form.h"

enum { FORMAT_ERRORS_MAX = 3 };

static const char system_prompt[] =
    "You work on a task in a Linux sandbox, with the functions below. Your files are in "
    "/workspace. When the task is finished, reply without a function call, or call submit if you "
    "have it.";

static const char cut_words[] =
    "That reply was cut off at the limit of its length, so nothing was run. Write a shorter one.";

struct tools_agent {
    struct agent_run *run;
    struct dialogue dialogue;
    struct toolbox box;
    const struct form *form;
    size_t format_errors;
};

enum step { STEP_MORE, STEP_DONE, STEP_FORMAT };

/* ---- a turn's calls ---------------------------------------------------------------------- */

static int submit(struct tools_agent *agent, struct tool_result *result, enum step *ret)
{
    *ret = STEP_DONE;
    free(agent->run->answer);
    agent->run->answer = take_ptr(&result->answer);
    return 0;
}

/* Makes the calls up to a final one; what they gave is added to `told`. */
static int make_calls(struct tools_agent *agent, const struct form_reply *reply,
                      struct buffer *told, double *seconds, enum step *ret, struct fail *fail)
{
    int error = 0;
    for (size_t i = 0; i < reply->count && error == 0 && *ret == STEP_MORE; i++) {
        struct tool_result result;
        error = calling_make(&agent->box, agent->run, reply->calls[i].name,
                             reply->calls[i].arguments, &result, fail);
        if (error < 0)
            break;
        agent->form->tell(&result, told);
        *seconds += result.seconds;
        if (result.is_final)
            error = submit(agent, &result, ret);
        tool_result_finish(&result);
    }
    return error == 0 && told->failed ? fail_set(fail, -ENOMEM, "out of memory") : error;
}

static int run_calls(struct tools_agent *agent, const struct form_reply *reply, bool is_last,
                     enum step *ret, struct fail *fail)
{
    AUTO_BUFFER told = {0};
    double seconds = 0;
    int error = make_calls(agent, reply, &told, &seconds, ret, fail);
    if (error < 0 || is_last || *ret == STEP_DONE)
        return error;
    return dialogue_bridge(&agent->dialogue, buffer_peek(&told), seconds, fail);
}

/* ---- turns ------------------------------------------------------------------------------- */

/* Acts on what was read from the last reply. */
static int act(struct tools_agent *agent, const struct form_reply *reply, bool is_last,
               enum step *ret, struct fail *fail)
{
    const char *wrong = reply->wrong[0] ? reply->wrong : NULL;
    if (agent->dialogue.is_cut && (wrong || reply->count == 0))
        wrong = cut_words;
    if (!wrong && reply->count == 0) {
        *ret = STEP_DONE;
        return 0;
    }
    if (wrong && agent->format_errors++ == FORMAT_ERRORS_MAX) {
        *ret = STEP_FORMAT;
        return 0;
    }
    if (!wrong)
        return run_calls(agent, reply, is_last, ret, fail);
    return is_last ? 0
                   : dialogue_tell(&agent->dialogue, slice_from_str(wrong), NULL, 0, 0, fail);
}

static int take_step(struct tools_agent *agent, bool is_last, enum step *ret, struct fail *fail)
{
    struct form_reply reply;
    *ret = STEP_MORE;
    int error = dialogue_sample(&agent->dialogue, fail);
    if (error < 0)
        return error;
    agent->form->read(agent->run->answer, &reply);
    error = act(agent, &reply, is_last, ret, fail);
    form_reply_finish(&reply);
    return error;
}

static enum outcome take_turns(struct tools_agent *agent, struct fail *fail)
{
    struct agent_run *run = agent->run;
    for (uint64_t turn = 1; turn <= run->task->max_turns; turn++) {
        enum step step;
        int error = take_step(agent, turn == run->task->max_turns, &step, fail);
        if (error < 0 || step == STEP_DONE)
            return dialogue_end(&agent->dialogue, error, fail);
        if (step == STEP_FORMAT)
            return agent_end(run, OUTCOME_AGENT, "format: %d replies whose calls cannot be read",
                             FORMAT_ERRORS_MAX + 1);
    }
    return agent_end(run, OUTCOME_AGENT, "turns: all %llu are used up",
                     (unsigned long long)run->task->max_turns);
}

static enum outcome converse(struct tools_agent *agent)
{
    struct fail fail = {0};
    AUTO_BUFFER block = {0};
    if (!agent->form->describe(&agent->box, &block))
        return agent_end(agent->run, OUTCOME_INFRA, "out of memory");
    AUTO_FREE char *words = buffer_take_str(&block);
    if (!words)
        return agent_end(agent->run, OUTCOME_INFRA, "out of memory");
    int error = dialogue_open_with(&agent->dialogue, agent->run, system_prompt, words, &fail);
    return error < 0 ? dialogue_end(&agent->dialogue, error, &fail) : take_turns(agent, &fail);
}

static enum outcome tools_run(struct agent_run *run)
{
    struct tools_agent agent = {.run = run, .form = form_find("hermes")};
    enum outcome outcome;
    if (calling_open(&agent.box, run, &outcome) == 0)
        outcome = converse(&agent);
    toolbox_close(&agent.box);
    dialogue_close(&agent.dialogue);
    return outcome;
}

const struct agent agent_tools = {
    .name = "tools",
    .doc = "function calls in the form of Hermes and Qwen, until submit or a reply without calls",
    .needs_engine = true,
    .needs_sandbox = true,
    .run = tools_run,
};
