/*
 * tools.c - the agent that calls functions: a reply may hold several calls, which are made one
 * after the other, and their results are the next turn. It ends with a call of submit, or with a
 * reply without calls.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/agents/agents.h"
#include "workers/agents/calling.h"
#include "workers/agents/dialogue.h"
#include "workers/agents/ends.h"
#include "workers/agents/form.h"

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
    size_t format_errors; /* replies in a row with something that could not be made */
};

enum step { STEP_MORE, STEP_DONE, STEP_FORMAT };

/* ---- a turn's calls ---------------------------------------------------------------------- */

/* Whether the last reply was one too many that had something wrong. */
static bool is_too_wrong(struct tools_agent *agent, bool is_wrong)
{
    agent->format_errors = is_wrong ? agent->format_errors + 1 : 0;
    return agent->format_errors > agent->run->task->max_format_errors;
}

static void submit(struct tools_agent *agent, struct tool_result *result, enum step *ret)
{
    *ret = STEP_DONE;
    free(agent->run->answer);
    agent->run->answer = take_ptr(&result->answer);
}

/* What the calls of a turn gave, all together. */
struct told {
    struct buffer text;
    double seconds;
    bool is_wrong; /* one of them was refused */
};

/* Makes the calls up to a final one; what they gave is added to `told`. */
static int make_calls(struct tools_agent *agent, const struct form_reply *reply, struct told *told,
                      enum step *ret, struct fail *fail)
{
    for (size_t i = 0; i < reply->count && *ret == STEP_MORE; i++) {
        struct tool_result result;
        int error =
            calling_make(&agent->box, agent->run, agent->form, &reply->calls[i], &result, fail);
        if (error < 0)
            return error;
        agent->form->tell(reply->calls[i].name, &result, &told->text);
        told->seconds += result.seconds;
        told->is_wrong |= result.is_refused;
        if (result.is_final)
            submit(agent, &result, ret);
        tool_result_finish(&result);
    }
    if (reply->note)
        buffer_printf(&told->text, "\n%s", reply->note);
    return told->text.failed ? fail_set(fail, -ENOMEM, "out of memory") : 0;
}

static int run_calls(struct tools_agent *agent, const struct form_reply *reply, bool is_last,
                     enum step *ret, struct fail *fail)
{
    struct told told = {0};
    int error = make_calls(agent, reply, &told, ret, fail);
    if (error == 0 && *ret == STEP_MORE && is_too_wrong(agent, told.is_wrong))
        *ret = STEP_FORMAT;
    if (error == 0 && *ret == STEP_MORE && !is_last)
        error = dialogue_bridge(&agent->dialogue, buffer_peek(&told.text), told.seconds, fail);
    buffer_finish(&told.text);
    return error;
}

/* ---- turns ------------------------------------------------------------------------------- */

/* What is wrong with the reply; NULL: nothing. */
static const char *wrong_with(const struct tools_agent *agent, const struct form_reply *reply)
{
    if (agent->dialogue.is_cut && (reply->wrong[0] || reply->is_open || reply->count == 0))
        return cut_words;
    return reply->wrong[0] ? reply->wrong : NULL;
}

/* Acts on what was read from the last reply. */
static int act(struct tools_agent *agent, const struct form_reply *reply, bool is_last,
               enum step *ret, struct fail *fail)
{
    const char *wrong = wrong_with(agent, reply);
    if (!wrong && reply->count > 0)
        return run_calls(agent, reply, is_last, ret, fail);
    if (!wrong)
        *ret = STEP_DONE;
    else if (is_too_wrong(agent, true))
        *ret = STEP_FORMAT;
    else if (!is_last)
        return dialogue_tell(&agent->dialogue, slice_from_str(wrong), NULL, 0, 0, fail);
    return 0;
}

static int take_step(struct tools_agent *agent, bool is_last, enum step *ret, struct fail *fail)
{
    struct form_reply reply;
    *ret = STEP_MORE;
    int error = dialogue_sample(&agent->dialogue, fail);
    if (error < 0)
        return error;
    form_read(agent->form, &agent->box, agent->run->answer, &reply);
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
            return agent_end_by(run, END_FORMAT, "%zu replies in a row whose calls cannot "
                             "be made", agent->format_errors);
    }
    return agent_end_by(run, END_TURNS, "all %llu are used up",
                     (unsigned long long)run->task->max_turns);
}

/* The task's own, or that of the model. */
static int choose_form(struct tools_agent *agent, struct fail *fail)
{
    struct engine_about about;
    agent->form = form_find(agent->run->task->agent_form);
    if (agent->form)
        return 0;
    agent->dialogue = (struct dialogue){.run = agent->run, .call_start_ms = clock_ms()};
    int error = engine_describe(agent->run->engine, &about, fail);
    if (error == 0)
        agent->form = form_of_model(about.model);
    return error;
}

static enum outcome converse(struct tools_agent *agent)
{
    struct fail fail = {0};
    AUTO_BUFFER block = {0};
    int error = choose_form(agent, &fail);
    if (error < 0)
        return dialogue_end(&agent->dialogue, error, &fail);
    if (!agent->form->describe(&agent->box, &block))
        return agent_end(agent->run, OUTCOME_INFRA, "out of memory");
    AUTO_FREE char *words = buffer_take_str(&block);
    if (!words)
        return agent_end(agent->run, OUTCOME_INFRA, "out of memory");
    error = dialogue_open_with(&agent->dialogue, agent->run, system_prompt, words, &fail);
    return error < 0 ? dialogue_end(&agent->dialogue, error, &fail) : take_turns(agent, &fail);
}

static enum outcome tools_run(struct agent_run *run)
{
    struct tools_agent agent = {.run = run};
    enum outcome outcome;
    if (calling_open(&agent.box, run, &outcome) == 0)
        outcome = converse(&agent);
    toolbox_close(&agent.box);
    dialogue_close(&agent.dialogue);
    return outcome;
}

const struct agent agent_tools = {
    .name = "tools",
    .doc = "function calls in one of the forms, until submit or a reply without calls",
    .needs_engine = true,
    .needs_sandbox = true,
    .run = tools_run,
};
