#include "workers/handlers/roles/agent_turns.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/agents/kinds/tool_calls.h"
#include "workers/tools/tools.h"

static int refuse_with(struct handler_job *job, const char *words)
{
    handler_job_refuse(job, "%s", words);
    return 0;
}

static int reply_json(struct handler_job *job, json_t *json, struct fail *fail)
{
    AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text)
        return fail_memory(fail);
    handler_job_reply(job, &(struct msg_handler_reply){.json = slice_from_str(text), .has_json = true});
    return 0;
}

static int reply_over(struct agent_turns *turns, struct handler_job *job)
{
    static const char *const words[] = {"", "turns", "tokens", "context"};
    handler_job_reply(job, &(struct msg_handler_reply){.over = slice_from_str(words[turns->over]), .has_over = true});
    return 0;
}

/* What no longer fits is the agent's budget; but a first prompt, which is the task's. */
static int take_error(struct agent_turns *turns, struct handler_job *job, int error, struct fail *fail)
{
    if (error != -E2BIG || turns->conversation.model.turns == 0)
        return error;
    turns->over = OVER_CONTEXT;
    snprintf(turns->why, sizeof(turns->why), "%.255s", fail->text);
    return reply_over(turns, job);
}

/* ---- the tools --------------------------------------------------------------------------------- */

static bool wants_sandbox(const struct task *task)
{
    for (size_t i = 0; i < task->tool_count; i++) {
        const struct tool *tool = tool_find(task->tools[i]);
        if ((tool && tool->needs_sandbox) || task_handler_find(task, task->tools[i]))
            return true;
    }
    return false;
}

/* The toolbox of agent.tools, once; the sandbox is opened for those that need one. */
static int open_box(struct agent_turns *turns, struct fail *fail)
{
    struct agent_run *run = turns->run;
    if (turns->has_box)
        return 0;
    int code = wants_sandbox(run->task) && !run->sandbox ? run->open_sandbox(run, fail) : 0;
    if (code < 0)
        return code;
    turns->box = (struct toolbox){
        .sandbox = run->sandbox, .limits = &run->task->limits, .search = run->search, .source = run->tools};
    turns->has_box = true;
    for (size_t i = 0; i < run->task->tool_count && code == 0; i++)
        code = toolbox_add(&turns->box, run->task->tools[i], fail);
    return code;
}

/* How the prompt describes them. */
static int describe_tools(struct agent_turns *turns, struct fail *fail)
{
    AUTO_BUFFER block = {0};
    int error = open_box(turns, fail);
    if (error == 0)
        error = tool_telling_find_format(&turns->conversation.model, &turns->telling, fail);
    if (error == 0 && !turns->telling.format->describe(&turns->box, &block))
        error = fail_memory(fail);
    if (error == 0 && !(turns->block = buffer_take_str(&block)))
        error = fail_memory(fail);
    return error;
}

/* ---- what is added ------------------------------------------------------------------------------- */

static int open_prompt(struct agent_turns *turns, struct handler_messages *messages, bool is_tasks, bool tools,
                       struct fail *fail)
{
    int error = tools ? describe_tools(turns, fail) : 0;
    if (error < 0)
        return error;
    if (turns->block && !messages_add_block(messages, turns->block))
        return fail_memory(fail);
    error = conversation_open_messages(&turns->conversation, turns->run, messages->list, messages->count,
                                       is_tasks ? messages->count : 0, fail);
    turns->is_open = error == 0;
    return error == 0 && turns->telling.format
               ? tool_telling_find_role(&turns->conversation.model, &turns->telling, fail)
               : error;
}

/* A result as the model is told it: of several in the user's role all in one turn. */
static void tell_result(const struct agent_turns *turns, const struct handler_messages *messages, size_t i,
                        struct buffer *out)
{
    char *content = messages->list[i].content;
    const struct tool_result result = {.text = content, .len = strlen(content)};
    tool_telling_say(&turns->telling, messages->names[i], &result, out);
}

static int add_results(struct agent_turns *turns, const struct handler_messages *messages, struct fail *fail)
{
    const size_t count = turns->telling.role == TELL_TOOL ? messages->count : 1;
    struct buffer *texts = calloc(count, sizeof(*texts));
    struct slice *contents = calloc(count, sizeof(*contents));
    int error = texts && contents ? 0 : fail_memory(fail);
    for (size_t i = 0; i < messages->count && error == 0; i++) {
        tell_result(turns, messages, i, &texts[i < count ? i : 0]);
        if (turns->unsaid > 0)
            turns->unsaid--;
        else if (!record_say(turns->run->record, "tool", slice_from_str(messages->list[i].content), messages->names[i],
                             0))
            error = fail_memory(fail);
    }
    for (size_t i = 0; i < count && error == 0; i++)
        contents[i] = buffer_peek(&texts[i]);
    if (error == 0)
        error = conversation_bridge(&turns->conversation, turns->telling.role, contents, count, 0, fail);
    for (size_t i = 0; texts && i < count; i++)
        buffer_finish(&texts[i]);
    free(texts);
    free(contents);
    return error;
}

static int add_users(struct agent_turns *turns, const struct handler_messages *messages, struct fail *fail)
{
    struct slice contents[TASK_MESSAGES_MAX];
    for (size_t i = 0; i < messages->count; i++) {
        contents[i] = slice_from_str(messages->list[i].content);
        if (!record_say(turns->run->record, "user", contents[i], NULL, 0))
            return fail_memory(fail);
    }
    return conversation_bridge(&turns->conversation, TELL_USER, contents, messages->count, 0, fail);
}

/* What cannot be added between two turns; NULL: it can. */
static const char *wrong_with(const struct agent_turns *turns, const struct handler_messages *messages)
{
    const char *role = messages->list[0].role;
    if (!turns->is_answered)
        return "messages were added already, and the model has not answered them";
    for (size_t i = 0; i < messages->count; i++)
        if (strcmp(messages->list[i].role, role) != 0)
            return "messages of one role are added between two turns, user or tool";
    if (strcmp(role, "user") != 0 && strcmp(role, "tool") != 0)
        return "user or tool messages can be added; to say what system or assistant said, begin another trace: fork";
    if (strcmp(role, "tool") == 0 && !turns->telling.format)
        return "tool messages go with a first turn whose tools is true";
    return NULL;
}

static int add(struct agent_turns *turns, const struct handler_messages *messages, struct fail *fail)
{
    int error = strcmp(messages->list[0].role, "tool") == 0 ? add_results(turns, messages, fail)
                                                            : add_users(turns, messages, fail);
    turns->is_answered = error < 0;
    return error;
}

/* ---- a turn ------------------------------------------------------------------------------------------ */

static bool add_calls(const struct agent_turns *turns, json_t *json)
{
    struct tool_reply reply;
    tool_format_read(turns->telling.format, &turns->box, turns->run->answer, &reply);
    json_t *calls = json_array();
    bool done = calls != NULL;
    for (size_t i = 0; i < reply.count && done; i++)
        done = json_array_append_new(calls, json_pack("{s:s, s:O}", "name", reply.calls[i].name, "arguments",
                                                      reply.calls[i].arguments)) == 0;
    if (done && reply.wrong[0])
        done = json_object_set_new(json, "problem", json_string(reply.wrong)) == 0;
    tool_reply_finish(&reply);
    return json_object_set_new(json, "calls", calls) == 0 && done;
}

static int reply_turn(struct agent_turns *turns, struct handler_job *job, uint64_t tokens, bool tools,
                      struct fail *fail)
{
    json_t *json = json_pack("{s:s, s:s, s:I}", "text", turns->run->answer, "finish",
                             turns->conversation.is_cut ? "length" : "stop", "tokens", (json_int_t)tokens);
    if (json && tools && turns->telling.format && !add_calls(turns, json)) {
        json_decref(json);
        json = NULL;
    }
    return reply_json(job, json, fail);
}

static bool is_over(struct agent_turns *turns)
{
    const struct task *task = turns->run->task;
    if (turns->over == OVER_NONE && turns->conversation.model.turns >= task->max_turns)
        turns->over = OVER_TURNS;
    if (turns->over == OVER_NONE && model_is_spent(&turns->conversation.model))
        turns->over = OVER_TOKENS;
    return turns->over != OVER_NONE;
}

static int sample_turn(struct agent_turns *turns, struct handler_job *job, const struct msg_handler_sample *asked,
                       struct fail *fail)
{
    const uint64_t before = turns->conversation.model.sampled;
    turns->conversation.model.turn_tokens = asked->has_max_tokens ? asked->max_tokens : 0;
    int error = conversation_sample(&turns->conversation, fail);
    if (error < 0)
        return take_error(turns, job, error, fail);
    turns->is_answered = true;
    turns->unsaid = 0;
    return reply_turn(turns, job, turns->conversation.model.sampled - before, asked->has_tools && asked->tools, fail);
}

/* Adds what the request says; true: the turn may be sampled, else *ret is what the request came to. */
static bool prepare(struct agent_turns *turns, struct handler_job *job, struct handler_messages *messages, int *ret,
                    struct fail *fail)
{
    const struct msg_handler_sample *asked = &job->message.as.handler_sample;
    struct refusal no = {0};
    const char *wrong = NULL;
    if (asked->has_messages && !messages_read(asked->messages, messages, &no))
        wrong = no.text;
    else if (!asked->has_messages && !turns->is_open)
        messages_of_task(turns->run->task, messages);
    if (!wrong && messages->count == 0 && (turns->is_answered || !turns->is_open))
        wrong = turns->is_open ? "add a message before the model's next turn" : "there is no prompt";
    if (!wrong && turns->is_open && messages->count > 0)
        wrong = wrong_with(turns, messages);
    if (wrong) {
        *ret = refuse_with(job, wrong);
        return false;
    }
    if (!turns->is_open)
        *ret = open_prompt(turns, messages, !asked->has_messages, asked->has_tools && asked->tools, fail);
    else
        *ret = messages->count > 0 ? add(turns, messages, fail) : 0;
    return *ret == 0;
}

int agent_turns_sample(struct agent_turns *turns, struct handler_job *job, struct fail *fail)
{
    const struct msg_handler_sample asked = job->message.as.handler_sample;
    struct handler_messages *messages;
    int error = 0;
    if (!turns->run->engine)
        return refuse_with(job, "agent.engine of the task is none: there is no model to sample");
    if (is_over(turns))
        return reply_over(turns, job);
    messages = calloc(1, sizeof(*messages)); /* large for a fiber's stack */
    if (!messages)
        return fail_memory(fail);
    if (prepare(turns, job, messages, &error, fail))
        error = sample_turn(turns, job, &asked, fail);
    else if (error < 0)
        error = take_error(turns, job, error, fail);
    messages_finish(messages);
    free(messages);
    return error;
}

/* ---- another conversation --------------------------------------------------------------------------- */

static int fork_to(struct agent_turns *turns, struct handler_job *job, struct handler_messages *messages,
                   struct fail *fail)
{
    const struct slice reason = job->message.as.handler_fork.reason;
    struct refusal no = {0};
    char words[16];
    snprintf(words, sizeof(words), "%.*s", SLICE_ARG(reason));
    text_sanitize(words);
    if (!messages_read(job->message.as.handler_fork.messages, messages, &no))
        return refuse_with(job, no.text);
    int error = 0;
    if (!turns->is_open)
        error = open_prompt(turns, messages, false, false, fail);
    else if (turns->block && !messages_add_block(messages, turns->block))
        error = fail_memory(fail);
    else
        error = conversation_fork(&turns->conversation, messages->list, messages->count, words, fail);
    turns->is_answered = false;
    turns->unsaid = 0;
    return error < 0 ? take_error(turns, job, error, fail) : reply_json(job, json_object(), fail);
}

int agent_turns_fork(struct agent_turns *turns, struct handler_job *job, struct fail *fail)
{
    if (!turns->run->engine)
        return refuse_with(job, "agent.engine of the task is none: there is no conversation");
    if (turns->over != OVER_NONE)
        return reply_over(turns, job);
    struct handler_messages *messages = calloc(1, sizeof(*messages));
    int error = messages ? fork_to(turns, job, messages, fail) : fail_memory(fail);
    if (messages)
        messages_finish(messages);
    free(messages);
    return error;
}

/* ---- a call of a tool ---------------------------------------------------------------------------------- */

static int reply_result(struct handler_job *job, const struct tool_result *result, struct fail *fail)
{
    json_t *json = json_pack("{s:s%, s:i, s:b}", "text", result->text, result->len, "status", result->status,
                             "is_error", result->is_error);
    if (json && result->is_final && result->answer &&
        json_object_set_new(json, "answer", json_string(result->answer)) < 0) {
        json_decref(json);
        json = NULL;
    }
    return reply_json(job, json, fail);
}

static int make_call(struct agent_turns *turns, struct handler_job *job, const json_t *arguments, struct fail *fail)
{
    struct tool_result result;
    char name[HANDLER_NAME_MAX + 1];
    snprintf(name, sizeof(name), "%.*s", SLICE_ARG(job->message.as.handler_tool.name));
    const struct tool_format_call call = {.name = name, .arguments = (json_t *)(uintptr_t)arguments};
    int error = open_box(turns, fail);
    if (error == 0)
        error = tool_calls_make(&turns->box, turns->run, turns->telling.format, &call, &result, fail);
    if (error < 0)
        return error;
    turns->unsaid++;
    error = reply_result(job, &result, fail);
    tool_result_finish(&result);
    return error;
}

int agent_turns_tool(struct agent_turns *turns, struct handler_job *job, struct fail *fail)
{
    const struct slice text = job->message.as.handler_tool.arguments;
    json_t *arguments = text_is_shallow(text, FORM_DEPTH_MAX)
                            ? json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL)
                            : NULL;
    int error = json_is_object(arguments) ? make_call(turns, job, arguments, fail)
                                          : refuse_with(job, "arguments are not a JSON object");
    json_decref(arguments);
    return error;
}

void agent_turns_close(struct agent_turns *turns)
{
    toolbox_close(&turns->box);
    conversation_close(&turns->conversation);
    free(turns->block);
    turns->block = NULL;
}
