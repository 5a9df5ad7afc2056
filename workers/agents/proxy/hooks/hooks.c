#include "workers/agents/proxy/hooks/hooks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/ends.h"
#include "workers/agents/proxy/hooks/hook_json.h"

static void cleanup_json(json_t **json) { json_decref(*json); }
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

/* ---- what becomes of a conversation ----------------------------------------------------------------------- */

/* What differs between the two lists, once what they begin and end with is taken off. */
static bool find_changed(const json_t *asked, const json_t *list, size_t *ret_from, size_t *ret_end)
{
    const size_t old = json_array_size(asked), new = json_array_size(list), least = old < new ? old : new;
    size_t from = 0, end = 0;
    while (from < least && json_equal(json_array_get(asked, from), json_array_get(list, from)))
        from++;
    while (end < least - from && json_equal(json_array_get(asked, old - 1 - end), json_array_get(list, new - 1 - end)))
        end++;
    *ret_from = from;
    *ret_end = end;
    return from + end < old || from + end < new;
}

/* What was read is compared: a key that says nothing changes nothing. */
static int take_changed(struct hook_edits *edits, struct said_request *request, const json_t *asked, const json_t *list,
                        bool *ret_changed, struct fail *fail)
{
    struct said_request read = {0};
    size_t from, end;
    int error = hook_json_read_messages(list, &read, fail);
    AUTO_JSON json_t *now = error == 0 ? hook_json_messages(read.messages, read.count) : NULL;
    if (error == 0 && !now)
        error = fail_memory(fail);
    *ret_changed = error == 0 && find_changed(asked, now, &from, &end);
    if (*ret_changed) {
        const struct said_request becomes = {.messages = read.messages + from, .count = read.count - from - end};
        error = hook_edits_make(edits, request, from, request->count - from - end, &becomes, fail);
    }
    said_request_finish(&read);
    return error;
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

static int note(struct agent_run *run, struct fail *fail, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int note(struct agent_run *run, struct fail *fail, const char *format, ...)
{
    char text[2200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return record_say(run->record, "note", slice_from_str(text), "", 0) ? 0 : agent_record_full(fail);
}

static int note_refusal(struct agent_run *run, const char *name, const struct buffer *words, struct fail *fail)
{
    fail_set(fail, -EPERM, "refused by hook %s: %.*s", name, SLICE_ARG(buffer_peek(words)));
    struct fail full = {0};
    const int error = note(run, &full, "%s", fail->text);
    return error < 0 ? fail_set(fail, error, "%s", full.text) : -EPERM;
}

/* The answer as JSON: *ret stays NULL where it passes. What is no JSON is none of its protocol. */
static int ask(struct agent_run *run, size_t which, const struct hook_asking *asking, json_t **ret, struct fail *fail)
{
    struct hook_answer answer = {0};
    const char *name = run->hooks->name(run->hooks, which);
    int error = run->hooks->ask(run->hooks, which, asking, &answer, fail);
    if (error == 0 && answer.action == HOOK_REFUSE)
        error = note_refusal(run, name, &answer.words, fail);
    if (error == 0 && answer.action == HOOK_CHANGE && !(*ret = hook_json_parse(buffer_peek(&answer.json))))
        error = fail_set(fail, -EOWNERDEAD, "the hook %s answers with no JSON, or with too deep one", name);
    hook_answer_finish(&answer);
    return error;
}

/* Whose fault it is that an answer cannot be read. */
static int blame(struct agent_run *run, size_t which, int error, struct fail *fail)
{
    if (error != -EINVAL)
        return error;
    const struct fail why = *fail;
    return fail_set(fail, -EOWNERDEAD, "the hook %s: %s", run->hooks->name(run->hooks, which), why.text);
}

static int ask_one(struct hook_edits *edits, struct agent_run *run, size_t which, uint64_t turn,
                   struct said_request *request, struct fail *fail)
{
    AUTO_JSON json_t *asked = hook_json_messages(request->messages, request->count), *list = NULL;
    AUTO_JSON json_t *offered = hook_json_tools(request->tools, request->tool_count);
    AUTO_FREE char *messages = asked ? json_dumps(asked, JSON_COMPACT) : NULL;
    AUTO_FREE char *tools = offered ? json_dumps(offered, JSON_COMPACT) : NULL;
    const struct hook_asking asking = {
        .turn = turn, .messages = slice_from_str(messages), .tools = slice_from_str(tools)};
    bool is_changed = false;
    int error = messages && tools ? ask(run, which, &asking, &list, fail) : fail_memory(fail);
    if (error == 0 && list)
        error = take_changed(edits, request, asked, list, &is_changed, fail);
    if (error == 0 && is_changed)
        error = note(run, fail, "changed by hook %s: the request of turn %llu", run->hooks->name(run->hooks, which),
                     (unsigned long long)turn);
    return blame(run, which, error, fail);
}

int hooks_ask_request(struct hook_edits *edits, struct agent_run *run, uint64_t turn, struct said_request *request,
                      struct fail *fail)
{
    int error = hook_edits_repeat(edits, request, fail);
    for (size_t i = 0; error == 0 && run->hooks && i < run->hooks->count; i++)
        error = ask_one(edits, run, i, turn, request, fail);
    return error;
}

/* *now and `told` become what the answer makes of the turn, where that is anything else. */
static int take_told(struct agent_run *run, size_t which, uint64_t turn, const json_t *answer, json_t **now,
                     struct said_request *told, struct fail *fail)
{
    struct said_request read = {0};
    int error = hook_json_read_reply(answer, *now, &read, fail);
    AUTO_JSON json_t *becomes = error == 0 ? hook_json_told(&read.messages[0]) : NULL;
    if (error == 0 && !becomes)
        error = fail_memory(fail);
    if (error == 0 && !json_equal(becomes, *now)) {
        said_request_finish(told);
        *told = read;
        read = (struct said_request){0};
        json_decref(*now);
        *now = take_ptr(&becomes);
        error = note(run, fail, "changed by hook %s: the reply of turn %llu", run->hooks->name(run->hooks, which),
                     (unsigned long long)turn);
    }
    said_request_finish(&read);
    return error;
}

int hooks_ask_reply(struct agent_run *run, uint64_t turn, const struct reply *reply, struct said_request *told,
                    struct fail *fail)
{
    AUTO_JSON json_t *now = hooks_are_there(run) ? hook_json_reply(reply) : NULL;
    int error = 0;
    for (size_t i = 0; error == 0 && run->hooks && i < run->hooks->count; i++) {
        AUTO_JSON json_t *answer = NULL;
        AUTO_FREE char *text = now ? json_dumps(now, JSON_COMPACT) : NULL;
        const struct hook_asking asking = {.turn = turn, .reply = slice_from_str(text)};
        error = text ? ask(run, i, &asking, &answer, fail) : fail_memory(fail);
        if (error == 0 && answer)
            error = blame(run, i, take_told(run, i, turn, answer, &now, told, fail), fail);
    }
    return error;
}
