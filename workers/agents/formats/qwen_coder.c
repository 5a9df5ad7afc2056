/*
 * qwen_coder.c - the form of Qwen3-Coder, Qwen 3.5 and Nemotron 3: <function=NAME> within
 * <tool_call>, every value on lines of its own; a result within <tool_response>.
 *
 * Read with tolerance where the meaning is plain: text around the calls, a missing <tool_call> (these
 * models forget it behind a sentence), missing end tags at the reply's end, a value on its tags' line.
 */
#include "common/base/cleanup.h"
#include "workers/agents/formats/table.h"
#include "workers/agents/formats/xml.h"
#include "workers/tools/arguments.h"
#include "workers/tools/toolbox.h"

static const char before_tools[] = "# Tools\n\nYou can call these functions:\n\n<tools>";

static const char after_tools[] =
    "\n</tools>\n\n"
    "To call one, write it in this format, and nothing behind it:\n\n"
    "<tool_call>\n"
    "<function=name_of_function>\n"
    "<parameter=name_of_parameter>\n"
    "value\n"
    "</parameter>\n"
    "<parameter=name_of_another>\n"
    "a value may have\n"
    "several lines\n"
    "</parameter>\n"
    "</function>\n"
    "</tool_call>\n\n"
    "Begin with <tool_call>, give all required parameters, and reason before a call, not after it. "
    "Without a call your reply is the answer.";

/* ---- the prompt ------------------------------------------------------------------------- */

/* The rest of a schema's keys, each in a tag of its name. */
static void describe_rest(const json_t *schema, struct buffer *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)schema, key, value)
    {
        if (strcmp(key, "type") == 0 || strcmp(key, "description") == 0 || strcmp(key, "properties") == 0)
            continue;
        AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY);
        buffer_printf(out, "\n<%s>%s</%s>", key, text ? text : "", key);
        out->failed |= !text;
    }
}

static void describe_parameter(const char *name, const json_t *schema, struct buffer *out)
{
    buffer_printf(out, "\n<parameter>\n<name>%s</name>\n<type>%s</type>\n<description>%s</description>", name,
                  json_string_value(json_object_get(schema, "type")),
                  json_string_value(json_object_get(schema, "description")));
    describe_rest(schema, out);
    buffer_append_str(out, "\n</parameter>");
}

static bool describe_tool(const struct tool *tool, struct buffer *out)
{
    json_t *json = tool_describe(tool);
    if (!json)
        return false;
    const char *name;
    json_t *schema;
    json_t *parameters = json_object_get(json_object_get(json, "function"), "parameters");
    buffer_printf(out, "\n<function>\n<name>%s</name>\n<description>%s</description>\n<parameters>", tool->name,
                  tool->doc);
    json_object_foreach(json_object_get(parameters, "properties"), name, schema) describe_parameter(name, schema, out);
    describe_rest(parameters, out);
    buffer_append_str(out, "\n</parameters>\n</function>");
    json_decref(json);
    return !out->failed;
}

static bool describe(const struct toolbox *box, struct buffer *out)
{
    buffer_append_str(out, before_tools);
    for (size_t i = 0; i < box->count; i++)
        if (!describe_tool(box->tools[i], out))
            return false;
    buffer_append_str(out, after_tools);
    return !out->failed;
}

static void say(const char *name, const json_t *arguments, struct buffer *out)
{
    buffer_append_str(out, CALL_TAG "\n");
    xml_say_call(name, arguments, XML_EACH, out);
    buffer_append_str(out, "\n" CALL_END);
}

/* ---- a reply ---------------------------------------------------------------------------- */

/* The next tag of the two that begin a call. */
static const char *find_call(struct reading *reading)
{
    struct reading other = *reading;
    const char *tag = reading_find(reading, CALL_TAG), *bare = reading_find(&other, XML_FUNCTION);
    if (bare && (!tag || bare < tag))
        reading->at = other.at;
    return bare && (!tag || bare < tag) ? bare : tag;
}

static bool read_call(struct reading *reading, const char *from)
{
    const char *at = starts_with(from, CALL_TAG) ? skip_blanks(from + strlen(CALL_TAG)) : from;
    if (!starts_with(at, XML_FUNCTION))
        return reading_wrong(reading, at, XML_FUNCTION "NAME> is expected behind " CALL_TAG ", not %.24s",
                             *at ? at : "the end of the reply");
    const char *end = xml_read_call(reading, at, XML_EACH);
    if (!end)
        return false;
    at = skip_blanks(end);
    reading->at = starts_with(at, CALL_END) ? at + strlen(CALL_END) : end;
    return true;
}

static void read_reply(const struct toolbox *box, const char *text, struct tool_reply *ret)
{
    struct reading reading = reading_start(box, text, ret);
    const char *call = find_call(&reading);
    if (call)
        reading_note_begin(&reading, call);
    while (call && read_call(&reading, call))
        call = find_call(&reading);
}

static enum call_start starts(const char *text, const char *at)
{
    (void)text;
    const enum call_start tag = tag_starts(at, CALL_TAG);
    return tag == CALL_NOT ? tag_starts(at, XML_FUNCTION) : tag;
}

static void tell(const char *name, const struct tool_result *result, struct buffer *out)
{
    tool_format_hermes.tell(name, result, out);
}

const struct tool_format tool_format_qwen_coder = {
    .name = "qwen-coder",
    .doc = "`<function=NAME>` and `<parameter=NAME>` within `<tool_call>`: Qwen3-Coder, Qwen 3.5, "
           "Nemotron 3",
    .marker = XML_FUNCTION,
    .tool_mark = "<tool_response>",
    .describe = describe,
    .say = say,
    .read = read_reply,
    .starts = starts,
    .tell = tell,
};
