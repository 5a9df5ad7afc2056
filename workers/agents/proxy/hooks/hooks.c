#include "workers/agents/proxy/hooks/hooks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/ends.h"
#include "workers/agents/proxy/hooks/hook_json.h"
#include "workers/agents/proxy/meaning.h"

static void cleanup_json(json_t **json) { json_decref(*json); }
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

/* ---- what became of a conversation ---------------------------------------------------------------------- */

/* Copies of messages, by their JSON. */
static bool copy_into(const struct said *messages, size_t count, struct said_request *ret)
{
    AUTO_JSON json_t *json = hook_json_messages(messages, count);
    return json && (count == 0 || hook_json_read_messages(json, ret, NULL) == 0);
}

/* Messages [at, at + count) become the new ones, which are moved. False: out of memory, or too many. */
static bool splice(struct said_request *request, size_t at, size_t count, struct said_request *becomes)
{
    const size_t after = request->count - at - count, total = at + becomes->count + after;
    struct said *messages = total <= SAID_MESSAGES_MAX ? calloc(total + 1, sizeof(*messages)) : NULL;
    struct said_request old = {.messages = calloc(count + 1, sizeof(*messages)), .count = count};
    if (!messages || !old.messages) {
        free(messages);
        free(old.messages);
        return false;
    }
    memcpy(messages, request->messages, at * sizeof(*messages));
    if (becomes->count)
        memcpy(messages + at, becomes->messages, becomes->count * sizeof(*messages));
    memcpy(messages + at + becomes->count, request->messages + at + count, after * sizeof(*messages));
    memcpy(old.messages, request->messages + at, count * sizeof(*messages));
    said_request_finish(&old);
    free(request->messages);
    request->messages = messages;
    request->count = total;
    request->capacity = total + 1;
    becomes->count = 0;
    return true;
}

static bool is_there(const struct said_request *request, size_t at, const struct said_request *messages)
{
    if (at + messages->count > request->count)
        return false;
    for (size_t i = 0; i < messages->count; i++)
        if (!meaning_equals(&messages->messages[i], &request->messages[at + i], request->tools, request->tool_count))
            return false;
    return true;
}

static bool repeat(const struct hook_edit *edit, struct said_request *request)
{
    struct said_request becomes = {0};
    if (!is_there(request, edit->at - edit->before.count, &edit->before) || !is_there(request, edit->at, &edit->was))
        return true;
    const bool done = copy_into(edit->becomes.messages, edit->becomes.count, &becomes) &&
                      splice(request, edit->at, edit->was.count, &becomes);
    said_request_finish(&becomes);
    return done;
}

bool hooks_repeat(struct hooks *hooks, struct said_request *request)
{
    bool done = true;
    for (size_t i = 0; i < hooks->count && done; i++)
        done = repeat(&hooks->edits[i], request);
    return done;
}

static void edit_finish(struct hook_edit *edit)
{
    said_request_finish(&edit->before);
    said_request_finish(&edit->was);
    said_request_finish(&edit->becomes);
}

void hooks_finish(struct hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++)
        edit_finish(&hooks->edits[i]);
    free(hooks->edits);
    *hooks = (struct hooks){0};
}

static struct hook_edit *add_edit(struct hooks *hooks)
{
    if (hooks->count == HOOK_EDITS_MAX)
        return NULL;
    if (hooks->count == hooks->capacity) {
        const size_t capacity = hooks->capacity ? 2 * hooks->capacity : 8;
        struct hook_edit *edits = reallocarray(hooks->edits, capacity, sizeof(*edits));
        if (!edits)
            return NULL;
        hooks->edits = edits;
        hooks->capacity = capacity;
    }
    hooks->edits[hooks->count] = (struct hook_edit){0};
    return &hooks->edits[hooks->count++];
}

/* Messages [at, at + count) of the request become those of the list from `at` on, `more` of them; it is remembered. */
static int change(struct hooks *hooks, struct said_request *request, size_t at, size_t count, const json_t *list,
                  size_t more, struct fail *fail)
{
    struct hook_edit *edit = add_edit(hooks);
    struct said_request becomes = {0};
    AUTO_JSON json_t *part = json_array();
    for (size_t i = 0; i < more; i++)
        json_array_append(part, json_array_get(list, at + i));
    const size_t before = at > 0 ? 1 : 0;
    int error = edit && json_array_size(part) == more ? 0 : fail_memory(fail);
    if (error == 0 && more > 0)
        error = hook_json_read_messages(part, &edit->becomes, fail);
    if (error < 0)
        return error;
    edit->at = at;
    const bool done = copy_into(request->messages + at - before, before, &edit->before) &&
                      copy_into(request->messages + at, count, &edit->was) &&
                      copy_into(edit->becomes.messages, more, &becomes) && splice(request, at, count, &becomes);
    said_request_finish(&becomes);
    return done ? 0 : fail_memory(fail);
}

/* What differs between the two lists, once what they begin and end with is taken off. */
static int take_changed(struct hooks *hooks, struct said_request *request, const json_t *asked, const json_t *list,
                        bool *ret_changed, struct fail *fail)
{
    const size_t old = json_array_size(asked), new = json_array_size(list), least = old < new ? old : new;
    size_t from = 0, end = 0;
    while (from < least && json_equal(json_array_get(asked, from), json_array_get(list, from)))
        from++;
    while (end < least - from && json_equal(json_array_get(asked, old - 1 - end), json_array_get(list, new - 1 - end)))
        end++;
    *ret_changed = from + end < old || from + end < new;
    if (!*ret_changed)
        return 0;
    if (new == 0)
        return fail_set(fail, -EINVAL, "messages are not a list of 1 to %d", SAID_MESSAGES_MAX);
    return change(hooks, request, from, old - from - end, list, new - from - end, fail);
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

static int ask_one(struct hooks *hooks, struct agent_run *run, size_t which, uint64_t turn,
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
        error = take_changed(hooks, request, asked, list, &is_changed, fail);
    if (error == 0 && is_changed)
        error = note(run, fail, "changed by hook %s: the request of turn %llu", run->hooks->name(run->hooks, which),
                     (unsigned long long)turn);
    return blame(run, which, error, fail);
}

int hooks_ask_request(struct hooks *hooks, struct agent_run *run, uint64_t turn, struct said_request *request,
                      struct fail *fail)
{
    int error = hooks_repeat(hooks, request) ? 0 : fail_memory(fail);
    for (size_t i = 0; error == 0 && run->hooks && i < run->hooks->count; i++)
        error = ask_one(hooks, run, i, turn, request, fail);
    return error;
}

int hooks_ask_reply(struct agent_run *run, uint64_t turn, const struct reply *reply, struct said_request *told,
                    struct fail *fail)
{
    AUTO_JSON json_t *now = NULL;
    int error = 0;
    for (size_t i = 0; error == 0 && run->hooks && i < run->hooks->count; i++) {
        AUTO_JSON json_t *answer = NULL;
        if (!now)
            now = hook_json_reply(reply);
        AUTO_FREE char *text = now ? json_dumps(now, JSON_COMPACT) : NULL;
        const struct hook_asking asking = {.turn = turn, .reply = slice_from_str(text)};
        error = text ? ask(run, i, &asking, &answer, fail) : fail_memory(fail);
        if (error < 0 || !answer || json_equal(answer, now))
            continue;
        said_request_finish(told);
        error = blame(run, i, hook_json_read_reply(answer, told, fail), fail);
        json_decref(now);
        now = take_ptr(&answer);
        if (error == 0)
            error = note(run, fail, "changed by hook %s: the reply of turn %llu", run->hooks->name(run->hooks, i),
                         (unsigned long long)turn);
    }
    return error;
}
