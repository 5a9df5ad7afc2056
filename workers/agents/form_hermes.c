/*
 * form_hermes.c - the form of the Hermes and Qwen models: schemas within <tools>, a call as JSON
 * within <tool_call>, a result within <tool_response>.
 *
 * Read with tolerance where the meaning is plain: text around the calls, a code fence within the
 * tags, a missing end tag, calls without tags (some engines do not show those tokens), arguments
 * as a string of JSON. What is inside <think> is not a call.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "workers/agents/form.h"

extern const struct form form_hermes;

#define CALL_TAG "<tool_call>"
#define CALL_END "</tool_call>"

/* ---- the prompt ------------------------------------------------------------------------- */

static const char before_tools[] =
    "# Tools\n\n"
    "You may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n"
    "<tools>";

static const char after_tools[] =
    "\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n"
    "<tool_call>\n"
    "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n"
    "</tool_call>";

static bool describe(const struct toolbox *box, struct buffer *out)
{
    buffer_append_str(out, before_tools);
    for (size_t i = 0; i < box->count; i++) {
        json_t *json = tool_describe(box->tools[i]);
        AUTO_FREE char *text = json ? json_dumps(json, 0) : NULL;
        json_decref(json);
        if (!text)
            return false;
        buffer_printf(out, "\n%s", text);
    }
    buffer_append_str(out, after_tools);
    return !out->failed;
}

static void tell(const struct tool_result *result, struct buffer *out)
{
    const bool has_line = result->len > 0 && result->text[result->len - 1] == '\n';
    buffer_append_str(out, out->len > 0 ? "\n<tool_response>\n" : "<tool_response>\n");
    buffer_append(out, result->text, result->len);
    buffer_append_str(out, has_line ? "</tool_response>" : "\n</tool_response>");
}

/* ---- a reply ---------------------------------------------------------------------------- */

static struct slice trim(struct slice text)
{
    while (text.len > 0 && isspace(text.data[0]))
        text = slice_of(text.data + 1, text.len - 1);
    while (text.len > 0 && isspace(text.data[text.len - 1]))
        text.len--;
    return text;
}

/* Without a ``` line before and after it. */
static struct slice strip_fence(struct slice text)
{
    text = trim(text);
    if (text.len < 3 || memcmp(text.data, "```", 3) != 0)
        return text;
    const uint8_t *line = memchr(text.data, '\n', text.len);
    if (!line)
        return text;
    text = trim(slice_of(line + 1, text.len - (size_t)(line + 1 - text.data)));
    if (text.len >= 3 && memcmp(text.data + text.len - 3, "```", 3) == 0)
        text.len -= 3;
    return trim(text);
}

static bool go_wrong(struct form_reply *reply, const char *words)
{
    snprintf(reply->wrong, sizeof(reply->wrong),
             "Call %zu of that reply cannot be read: %.300s. Nothing was run. A call is "
             "{\"name\": ..., \"arguments\": {...}} as JSON, within " CALL_TAG " and " CALL_END ".",
             reply->count + 1, words);
    return false;
}

/* A reference of the caller's to an object; models write it as a string of JSON, too. */
static json_t *arguments_of(const json_t *call)
{
    char wrong[256];
    size_t used;
    json_t *given = json_object_get(call, "arguments");
    if (!given)
        given = json_object_get(call, "parameters");
    if (!given || json_is_null(given))
        return json_object();
    if (!json_is_string(given))
        return json_incref(given);
    return form_read_json(slice_from_str(json_string_value(given)), &used, wrong, sizeof(wrong));
}

static bool add_call(struct form_reply *reply, const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    if (!json_is_object(call) || !name)
        return go_wrong(reply, "it is no object with a \"name\"");
    json_t *arguments = arguments_of(call);
    if (json_is_object(arguments))
        return form_add_call(reply, name, arguments);
    json_decref(arguments);
    return go_wrong(reply, "its \"arguments\" are no object");
}

static bool add_value(struct form_reply *reply, const json_t *value)
{
    if (!json_is_array(value))
        return add_call(reply, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!add_call(reply, json_array_get(value, i)))
            return false;
    return true;
}

/* One call or several, one after the other. */
static bool read_block(struct form_reply *reply, struct slice text)
{
    text = strip_fence(text);
    if (text.len == 0)
        return go_wrong(reply, "it is empty");
    while (text.len > 0) {
        char wrong[256];
        size_t used = 0;
        json_t *value = form_read_json(text, &used, wrong, sizeof(wrong));
        bool good = value ? add_value(reply, value) : go_wrong(reply, wrong);
        json_decref(value);
        if (!good)
            return false;
        text = trim(slice_of(text.data + used, text.len - used));
    }
    return true;
}

/* Where no tag is: only JSON that is a call from its first byte on. */
static void read_bare(struct form_reply *reply, struct slice text)
{
    text = strip_fence(text);
    struct slice inner = text.len > 1 && text.data[0] == '{'
                             ? trim(slice_of(text.data + 1, text.len - 1))
                             : (struct slice){0};
    if (inner.len >= 6 && memcmp(inner.data, "\"name\"", 6) == 0)
        read_block(reply, text);
}

static const char *after_thinking(const char *text)
{
    const char *end = NULL;
    for (const char *at = text; (at = strstr(at, "</think>")); at += strlen("</think>"))
        end = at + strlen("</think>");
    if (end)
        return end;
    return strstr(text, "<think>") ? text + strlen(text) : text;
}

static void read_reply(const char *text, struct form_reply *ret)
{
    *ret = (struct form_reply){0};
    text = after_thinking(text);
    const char *tag = strstr(text, CALL_TAG);
    if (!tag)
        read_bare(ret, slice_from_str(text));
    while (tag && !ret->wrong[0]) {
        const char *from = tag + strlen(CALL_TAG);
        const char *end = strstr(from, CALL_END);
        tag = strstr(from, CALL_TAG);
        if (!end || (tag && tag < end))
            end = tag ? tag : from + strlen(from);
        read_block(ret, slice_of(from, (size_t)(end - from)));
    }
    if (ret->wrong[0])
        form_reply_finish(ret);
}

const struct form form_hermes = {
    .name = "hermes",
    .doc = "Hermes and Qwen: JSON within <tool_call>",
    .describe = describe,
    .read = read_reply,
    .tell = tell,
};
