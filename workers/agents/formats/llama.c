/*
 * llama.c - the form of the Llama 3 models (3.1 to 3.3, custom tools): a call is JSON with name
 * and parameters, as all of the reply or behind <|python_tag|>; several are separated by ';' or by
 * line ends. Results are plain text.
 *
 * Read with tolerance where the meaning is plain: text around the calls, a code fence, arguments for
 * parameters, a list of calls, a "type" of "function".
 */
#include "workers/agents/formats/json.h"
#include "workers/agents/formats/table.h"
#include "workers/tools/toolbox.h"

#define PYTHON_TAG "<|python_tag|>"

static const char before_tools[] = "You can call these functions:\n";

static const char after_tools[] =
    "\n\nTo call one, reply with JSON alone, which names the function and gives every parameter "
    "its "
    "value:\n"
    "{\"name\": function name, \"parameters\": {parameter name: value}}\n"
    "Separate several calls with ; and use no variables. Values are what the schema says.";

static bool describe(const struct toolbox *box, struct buffer *out)
{
    buffer_append_str(out, before_tools);
    if (!json_describe_tools(box, JSON_INDENT(4), out))
        return false;
    buffer_append_str(out, after_tools);
    return !out->failed;
}

static void say(const char *name, const json_t *arguments, struct buffer *out)
{
    json_say_call(name, "parameters", arguments, out);
}

static void tell(const char *name, const struct tool_result *result, struct buffer *out)
{
    const bool has_line = result->len > 0 && result->text[result->len - 1] == '\n';
    buffer_printf(out, "%sResult of %.64s:\n", out->len > 0 ? "\n" : "", name);
    buffer_append(out, result->text, result->len);
    buffer_append_str(out, has_line ? "" : "\n");
}

/* Behind the tag only calls may stand: what else models write there is no JSON. */
static bool read_tagged(struct reading *reading, const char *from)
{
    const char *start = skip_blanks(from);
    if (*start != '{' && *start != '[' && !starts_with(start, "```"))
        return reading_wrong(reading, start, "JSON is expected behind " PYTHON_TAG ", not %.24s",
                             *start ? start : "the end of the reply");
    const char *end = json_read_calls(reading, start, ';');
    if (end)
        reading->at = end;
    return end;
}

static bool read_bare(struct reading *reading)
{
    for (const char *start; (start = json_find_bare(reading));) {
        const char *end = json_read_calls(reading, start, ';');
        if (!end)
            return false;
        reading->at = end;
    }
    return true;
}

static void read_reply(const struct toolbox *box, const char *text, struct tool_reply *ret)
{
    struct reading reading = reading_start(box, text, ret);
    const char *tag = reading_find(&reading, PYTHON_TAG);
    if (!tag && !ret->is_thinking)
        read_bare(&reading);
    if (tag)
        reading_note_begin(&reading, tag);
    while (tag && read_tagged(&reading, tag + strlen(PYTHON_TAG)))
        tag = reading_find(&reading, PYTHON_TAG);
}

static enum call_start starts(const char *text, const char *at)
{
    const enum call_start tag = tag_starts(at, PYTHON_TAG);
    return tag == CALL_NOT ? json_starts_bare(text, at) : tag;
}

const struct tool_format tool_format_llama = {
    .name = "llama",
    .doc = "JSON with `name` and `parameters`, as the reply or behind `<|python_tag|>`: Llama 3.1, "
           "3.2, 3.3",
    .marker = PYTHON_TAG,
    .tool_mark = "ipython",
    .describe = describe,
    .say = say,
    .read = read_reply,
    .starts = starts,
    .tell = tell,
};
