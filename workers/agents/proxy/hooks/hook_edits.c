#include "workers/agents/proxy/hooks/hook_edits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workers/agents/proxy/hooks/hook_json.h"
#include "workers/agents/proxy/meaning.h"

/* Copies of messages, by their JSON. */
static bool copy_into(const struct said *messages, size_t count, struct said_request *ret)
{
    json_t *json = hook_json_messages(messages, count);
    const bool done = json && (count == 0 || hook_json_read_messages(json, ret, NULL) == 0);
    json_decref(json);
    return done;
}

/* Messages [at, at + count) become the new ones, which are moved. False: out of memory. */
static bool splice(struct said_request *request, size_t at, size_t count, struct said_request *becomes)
{
    const size_t after = request->count - at - count, total = at + becomes->count + after;
    struct said *messages = calloc(total + 1, sizeof(*messages));
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

/* ---- what is known again ---------------------------------------------------------------------------------- */

/* Beyond their end: they are not known. */
static size_t find_tools(const struct hook_edits *edits, const json_t *tools)
{
    size_t at = 0;
    while (at < json_array_size(edits->tools) && !json_equal(json_array_get(edits->tools, at), tools))
        at++;
    return at;
}

/* Words that stand elsewhere than at the front are known by themselves; what stands beside others is not. */
static bool is_known_by_itself(const struct hook_edit *edit) { return edit->before.count > 0 && edit->was.count > 0; }

static bool is_followed_alike(const struct hook_edit *edit, const struct said_request *request)
{
    const size_t behind = edit->at + edit->was.count, end = behind + edit->behind.count;
    return is_there(request, behind, &edit->behind) &&
           (!edit->is_at_end || end == request->count || request->messages[end].role == SAID_ASSISTANT);
}

static bool is_known(const struct hook_edit *edit, const struct said_request *request, size_t tools)
{
    return is_there(request, edit->at - edit->before.count, &edit->before) && is_there(request, edit->at, &edit->was) &&
           (is_known_by_itself(edit) || (edit->tools == tools && is_followed_alike(edit, request)));
}

/* ---- made, and made again ---------------------------------------------------------------------------------- */

static int put(const struct hook_edit *edit, struct said_request *request, struct fail *fail)
{
    struct said_request becomes = {0};
    const size_t total = request->count - edit->was.count + edit->becomes.count;
    if (total > SAID_MESSAGES_MAX)
        return fail_set(fail, -E2BIG, "%zu messages with those of hooks, of at most %d", total, SAID_MESSAGES_MAX);
    const bool done = copy_into(edit->becomes.messages, edit->becomes.count, &becomes) &&
                      splice(request, edit->at, edit->was.count, &becomes);
    said_request_finish(&becomes);
    return done ? 0 : fail_memory(fail);
}

int hook_edits_repeat(const struct hook_edits *edits, struct said_request *request, struct fail *fail)
{
    if (edits->count == 0)
        return 0;
    json_t *tools = hook_json_tools(request->tools, request->tool_count);
    const size_t known = find_tools(edits, tools);
    int error = tools ? 0 : fail_memory(fail);
    json_decref(tools);
    for (size_t i = 0; error == 0 && i < edits->count; i++)
        if (is_known(&edits->edits[i], request, known))
            error = put(&edits->edits[i], request, fail);
    return error;
}

static int add(struct hook_edits *edits, struct hook_edit **ret, struct fail *fail)
{
    if (edits->count == HOOK_EDITS_MAX)
        return fail_set(fail, -E2BIG, "hooks have made %d changes in the rollout, which is the most", HOOK_EDITS_MAX);
    if (edits->count == edits->capacity) {
        const size_t capacity = edits->capacity ? 2 * edits->capacity : 8;
        struct hook_edit *more = reallocarray(edits->edits, capacity, sizeof(*more));
        if (!more)
            return fail_memory(fail);
        edits->edits = more;
        edits->capacity = capacity;
    }
    *ret = &edits->edits[edits->count++];
    **ret = (struct hook_edit){0};
    return 0;
}

static bool note_tools(struct hook_edits *edits, const struct said_request *request, size_t *ret)
{
    json_t *tools = hook_json_tools(request->tools, request->tool_count);
    if (!edits->tools)
        edits->tools = json_array();
    *ret = find_tools(edits, tools);
    if (tools && edits->tools && *ret == json_array_size(edits->tools))
        return json_array_append_new(edits->tools, tools) == 0;
    json_decref(tools);
    return tools && edits->tools;
}

/* How many lie behind up to the first that is not a system's, which is one of them; *ret_is_all: there is none such. */
static size_t count_behind(const struct said_request *request, size_t from, bool *ret_is_all)
{
    size_t end = from;
    while (end < request->count && request->messages[end].role == SAID_SYSTEM)
        end++;
    *ret_is_all = end == request->count;
    return end - from + (*ret_is_all ? 0 : 1);
}

static bool note_place(struct hook_edit *edit, const struct said_request *request, size_t count)
{
    const size_t before = edit->at > 0 ? 1 : 0, from = edit->at + count;
    const size_t behind = count_behind(request, from, &edit->is_at_end);
    return copy_into(request->messages + edit->at - before, before, &edit->before) &&
           copy_into(request->messages + edit->at, count, &edit->was) &&
           copy_into(request->messages + from, behind, &edit->behind);
}

int hook_edits_make(struct hook_edits *edits, struct said_request *request, size_t at, size_t count,
                    const struct said_request *becomes, struct fail *fail)
{
    struct hook_edit *edit = NULL;
    const int error = add(edits, &edit, fail);
    if (error < 0)
        return error;
    edit->at = at;
    const bool is_noted = copy_into(becomes->messages, becomes->count, &edit->becomes) &&
                          note_tools(edits, request, &edit->tools) && note_place(edit, request, count);
    return is_noted ? put(edit, request, fail) : fail_memory(fail);
}

static void finish(struct hook_edit *edit)
{
    said_request_finish(&edit->before);
    said_request_finish(&edit->was);
    said_request_finish(&edit->becomes);
    said_request_finish(&edit->behind);
}

void hook_edits_finish(struct hook_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        finish(&edits->edits[i]);
    free(edits->edits);
    json_decref(edits->tools);
    *edits = (struct hook_edits){0};
}
