/*
 * openhands.c - the form of OpenHands for models without calls of their own: <function=NAME> with
 * parameters, one call a turn, at which reading stops; a result is a line that names the function, and
 * its text.
 *
 * Read with tolerance where the meaning is plain: text around the call, a missing end tag at the
 * reply's end, where a stop string may have cut it off.
 */
#include "common/base/cleanup.h"
#include "workers/agents/formats/table.h"
#include "workers/agents/formats/xml.h"
#include "workers/tools/arguments.h"
#include "workers/tools/toolbox.h"

static const char before_tools[] = "You can call these functions:\n";

static const char after_tools[] =
    "\nTo call one, write it in this format, and nothing behind it:\n\n"
    "<function=name_of_function>\n"
    "<parameter=name_of_parameter>value</parameter>\n"
    "<parameter=name_of_another>\n"
    "a value may have\n"
    "several lines\n"
    "</parameter>\n"
    "</function>\n\n"
    "Make one call at a time, give all required parameters, and reason before the call, not after "
    "it. Without a call your reply is the answer.";

static const char only_one[] =
    "Only the first call of that reply was made. Make one at a time, and wait for its result.";

static void describe_argument(size_t number, const struct tool_argument *argument, struct buffer *out)
{
    buffer_printf(out, "  (%zu) %s (%s, %s): %s\n", number, argument->name, tool_type_word(argument->type),
                  argument->required ? "required" : "optional", argument->doc);
    for (const char *at = argument->words; at; at = strchr(at, '|')) {
        const bool is_first = *at != '|';
        at += !is_first;
        buffer_printf(out, "%s`%.*s`", is_first ? "Allowed values: [" : ", ", (int)strcspn(at, "|"), at);
    }
    buffer_append_str(out, argument->words ? "]\n" : "");
}

static bool describe(const struct toolbox *box, struct buffer *out)
{
    buffer_append_str(out, before_tools);
    for (size_t i = 0; i < box->count; i++) {
        const struct tool *tool = box->tools[i];
        buffer_printf(out, "\n---- BEGIN FUNCTION #%zu: %s ----\nDescription: %s\nParameters:\n", i + 1, tool->name,
                      tool->doc);
        for (size_t k = 0; tool->arguments[k].name; k++)
            describe_argument(k + 1, &tool->arguments[k], out);
        buffer_printf(out, "---- END FUNCTION #%zu ----\n", i + 1);
    }
    buffer_append_str(out, after_tools);
    return !out->failed;
}

static void say(const char *name, const json_t *arguments, struct buffer *out)
{
    xml_say_call(name, arguments, XML_BOTH, out);
}

static void read_reply(const struct toolbox *box, const char *text, struct tool_reply *ret)
{
    struct reading reading = reading_start(box, text, ret);
    const char *call = reading_find(&reading, XML_FUNCTION);
    if (call)
        reading_note_begin(&reading, call);
    const char *end = call ? xml_read_call(&reading, call, XML_BOTH) : NULL;
    if (end && strstr(end, XML_FUNCTION))
        ret->note = only_one;
}

static enum call_start starts(const char *text, const char *at)
{
    (void)text;
    return tag_starts(at, XML_FUNCTION);
}

static void tell(const char *name, const struct tool_result *result, struct buffer *out)
{
    buffer_printf(out, "%sEXECUTION RESULT of [%.64s]:\n", out->len > 0 ? "\n" : "", name);
    buffer_append(out, result->text, result->len);
}

const struct tool_format tool_format_openhands = {
    .name = "openhands",
    .doc = "`<function=NAME>` and `<parameter=NAME>`, one call a turn: OpenHands",
    .marker = XML_FUNCTION,
    .describe = describe,
    .say = say,
    .read = read_reply,
    .starts = starts,
    .tell = tell,
};
