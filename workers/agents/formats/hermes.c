/*
 * hermes.c - the form of the Hermes and Qwen models: schemas within <tools>, a call as JSON
 * within <tool_call>, a result within <tool_response>.
 *
 * Read with tolerance where the meaning is plain: text around the calls, a code fence within the
 * tags, a missing end tag, calls without tags (some engines do not show those tokens), arguments
 * as a string of JSON. What is inside <think> is not a call.
 */
#include "workers/agents/formats/json.h"
#include "workers/agents/formats/table.h"
#include "workers/tools/toolbox.h"

/* ---- the prompt ------------------------------------------------------------------------- */

static const char before_tools[] = "# Tools\n\n"
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
    if (!json_describe_tools(box, 0, out))
        return false;
    buffer_append_str(out, after_tools);
    return !out->failed;
}

static void say(const char *name, const json_t *arguments, struct buffer *out)
{
    buffer_append_str(out, CALL_TAG "\n");
    json_say_call(name, "arguments", arguments, out);
    buffer_append_str(out, "\n" CALL_END);
}

static void tell(const char *name, const struct tool_result *result, struct buffer *out)
{
    (void)name;
    const bool has_line = result->len > 0 && result->text[result->len - 1] == '\n';
    buffer_append_str(out, out->len > 0 ? "\n<tool_response>\n" : "<tool_response>\n");
    buffer_append(out, result->text, result->len);
    buffer_append_str(out, has_line ? "</tool_response>" : "\n</tool_response>");
}

/* ---- a reply ---------------------------------------------------------------------------- */

/* What is within one tag, up to and with its end. */
static bool read_block(struct reading *reading, const char *from)
{
    const char *start = skip_blanks(from);
    if (!*start || starts_with(start, CALL_END))
        return reading_wrong(reading, from, "there is nothing within " CALL_TAG);
    const char *end = json_read_calls(reading, start, 0);
    if (!end)
        return false;
    reading->at = end;
    end = skip_blanks(end);
    if (starts_with(end, CALL_END))
        reading->at = end + strlen(CALL_END);
    else if (*end && !starts_with(end, CALL_TAG))
        return reading_wrong(reading, end, CALL_END " is expected behind the JSON, not %.24s", end);
    return true;
}

static void read_reply(const struct toolbox *box, const char *text, struct tool_reply *ret)
{
    struct reading reading = reading_start(box, text, ret);
    const char *tag = reading_find(&reading, CALL_TAG);
    if (!tag && !ret->is_thinking) {
        const char *bare = json_find_bare(&reading);
        if (bare)
            json_read_calls(&reading, bare, 0);
    }
    if (tag)
        reading_note_begin(&reading, tag);
    while (tag && read_block(&reading, tag + strlen(CALL_TAG)))
        tag = reading_find(&reading, CALL_TAG);
}

static enum call_start starts(const char *text, const char *at)
{
    const enum call_start tag = tag_starts(at, CALL_TAG);
    return tag == CALL_NOT ? json_starts_bare(text, at) : tag;
}

const struct tool_format tool_format_hermes = {
    .name = "hermes",
    .doc = "JSON within `<tool_call>`: Hermes, Qwen 2.5, Qwen 3",
    .marker = CALL_TAG,
    .tool_mark = "<tool_response>",
    .describe = describe,
    .say = say,
    .read = read_reply,
    .starts = starts,
    .tell = tell,
};
