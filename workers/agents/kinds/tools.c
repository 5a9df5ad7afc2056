/*
 * tools.c - the agent that calls functions: a reply may hold several calls, which are made one
 * after the other, and their results are the next turn, or turns in the role tool where models of
 * the form were trained so. It ends with a call of submit, or with a reply without calls.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/ends.h"
#include "workers/agents/kinds/agents.h"
#include "workers/agents/kinds/tool_calls.h"
#include "workers/agents/conversation/tool_telling.h"
#include "workers/agents/conversation/turns.h"
#include "workers/tools/toolbox.h"

static const char system_prompt[] =
    "You work on a task in a Linux sandbox, with the functions below. Your files are in "
    "/workspace. When the task is finished, reply without a function call, or call submit if you "
    "have it.";

static const char cut_words[] =
    "That reply was cut off at the limit of its length, so nothing was run. Write a shorter one.";

struct tools_agent {
    struct agent_run *run;
    struct turns turns;
    struct toolbox box;
    struct tool_telling telling;
};

/* ---- a turn's calls ---------------------------------------------------------------------- */

/* What the calls of a reply gave: in the role tool each in a turn of its own, else all in one. */
struct told {
    struct buffer texts[FORM_CALLS_MAX];
    size_t count;
    double seconds;
    bool is_wrong; /* one of them was refused */
    const char *warning;
};

static void submit(struct tools_agent *agent, struct tool_result *result)
{
    free(agent->run->answer);
    agent->run->answer = take_ptr(&result->answer);
}

static void tell_result(const struct tools_agent *agent, const char *name, const struct tool_result *result,
                        struct told *told)
{
    if (agent->telling.role == TELL_TOOL || told->count == 0)
        told->count++;
    tool_telling_say(&agent->telling, name, result, &told->texts[told->count - 1]);
}

/* Whether calls go in circles, by what this one says and gave. */
static enum step notice(struct tools_agent *agent, const struct tool_format_call *call,
                        const struct tool_result *result, struct told *told)
{
    AUTO_FREE char *text = json_dumps(call->arguments, JSON_COMPACT | JSON_SORT_KEYS);
    const char *warning;
    enum step step = turns_notice(&agent->turns, call->name, slice_from_str(text), result, &warning);
    if (warning)
        told->warning = warning;
    return step;
}

static int make_call(struct tools_agent *agent, const struct tool_format_call *call, struct told *told, enum step *ret,
                     struct fail *fail)
{
    struct tool_result result;
    int error = tool_calls_make(&agent->box, agent->run, agent->telling.format, call, &result, fail);
    if (error < 0)
        return error;
    tell_result(agent, call->name, &result, told);
    told->seconds += result.seconds;
    told->is_wrong |= result.is_refused;
    *ret = result.is_final ? STEP_DONE : notice(agent, call, &result, told);
    if (result.is_final)
        submit(agent, &result);
    tool_result_finish(&result);
    return 0;
}

/* Makes the calls up to a final one; what they gave is added to `told`. */
static int make_calls(struct tools_agent *agent, const struct tool_reply *reply, struct told *told, enum step *ret,
                      struct fail *fail)
{
    int error = 0;
    for (size_t i = 0; i < reply->count && error == 0 && *ret == STEP_MORE; i++)
        error = make_call(agent, &reply->calls[i], told, ret, fail);
    if (error < 0)
        return error;
    struct buffer *last = &told->texts[told->count - 1];
    if (reply->note)
        buffer_printf(last, "\n%s", reply->note);
    if (told->warning)
        buffer_printf(last, "\n%s", told->warning);
    return 0;
}

static int tell(struct tools_agent *agent, const struct told *told, struct fail *fail)
{
    struct slice contents[FORM_CALLS_MAX];
    for (size_t i = 0; i < told->count; i++) {
        if (told->texts[i].failed)
            return fail_memory(fail);
        contents[i] = buffer_peek(&told->texts[i]);
    }
    return conversation_bridge(&agent->turns.conversation, agent->telling.role, contents, told->count, told->seconds,
                               fail);
}

static int run_calls(struct tools_agent *agent, const struct tool_reply *reply, enum step *ret, struct fail *fail)
{
    struct told told = {0};
    int error = make_calls(agent, reply, &told, ret, fail);
    if (error == 0 && *ret == STEP_MORE)
        *ret = turns_judge(&agent->turns, told.is_wrong);
    if (error == 0 && *ret == STEP_MORE && !agent->turns.is_last)
        error = tell(agent, &told, fail);
    for (size_t i = 0; i < told.count; i++)
        buffer_finish(&told.texts[i]);
    return error;
}

/* ---- turns ------------------------------------------------------------------------------- */

/* What is wrong with the reply; NULL: nothing. */
static const char *wrong_with(const struct tools_agent *agent, const struct tool_reply *reply)
{
    if (agent->turns.conversation.is_cut && (reply->wrong[0] || reply->is_open || reply->count == 0))
        return cut_words;
    return reply->wrong[0] ? reply->wrong : NULL;
}

/* Acts on what was read from the last reply. */
static int act(struct tools_agent *agent, const struct tool_reply *reply, enum step *ret, struct fail *fail)
{
    const char *wrong = wrong_with(agent, reply);
    if (!wrong && reply->count > 0)
        return run_calls(agent, reply, ret, fail);
    *ret = wrong ? turns_judge(&agent->turns, true) : STEP_DONE;
    return *ret == STEP_MORE && !agent->turns.is_last
               ? conversation_tell(&agent->turns.conversation, slice_from_str(wrong), NULL, 0, 0, fail)
               : 0;
}

static int take_step(void *arg, enum step *ret, struct fail *fail)
{
    struct tools_agent *agent = arg;
    struct tool_reply reply;
    tool_format_read(agent->telling.format, &agent->box, agent->run->answer, &reply);
    int error = act(agent, &reply, ret, fail);
    tool_reply_finish(&reply);
    return error;
}

static enum outcome converse(struct tools_agent *agent)
{
    struct fail fail = {0};
    AUTO_BUFFER block = {0};
    int error = tool_telling_find_format(&agent->turns.conversation.model, &agent->telling, &fail);
    if (error < 0)
        return conversation_end(&agent->turns.conversation, error, &fail);
    if (!agent->telling.format->describe(&agent->box, &block))
        return agent_end(agent->run, OUTCOME_INFRA, "out of memory");
    AUTO_FREE char *words = buffer_take_str(&block);
    if (!words)
        return agent_end(agent->run, OUTCOME_INFRA, "out of memory");
    error = conversation_open_with(&agent->turns.conversation, agent->run, system_prompt, words, &fail);
    if (error == 0)
        error = tool_telling_find_role(&agent->turns.conversation.model, &agent->telling, &fail);
    return error < 0 ? conversation_end(&agent->turns.conversation, error, &fail)
                     : turns_run(&agent->turns, take_step, agent);
}

static enum outcome tools_run(struct agent_run *run)
{
    struct tools_agent agent = {.run = run, .turns = {.run = run, .conversation = {.model.run = run}}};
    enum outcome outcome;
    if (tool_calls_open(&agent.box, run, &outcome) == 0)
        outcome = converse(&agent);
    toolbox_close(&agent.box);
    conversation_close(&agent.turns.conversation);
    return outcome;
}

const struct agent agent_tools = {
    .name = "tools",
    .doc = "function calls in one of the forms, until submit or a reply without calls",
    .prompt = system_prompt,
    .needs_engine = true,
    .needs_sandbox = true,
    .run = tools_run,
};
