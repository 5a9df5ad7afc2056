/* tool_format.c - the table of forms, and what they share. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/formats/reading.h"
#include "workers/agents/formats/table.h"
#include "workers/tools/toolbox.h"

static const struct tool_format *const tool_formats[] = {&tool_format_hermes, &tool_format_qwen_coder,
                                                         &tool_format_llama, &tool_format_openhands};

const struct tool_format *tool_format_at(size_t i)
{
    return i < sizeof(tool_formats) / sizeof(*tool_formats) ? tool_formats[i] : NULL;
}

const struct tool_format *tool_format_find(const char *name)
{
    for (size_t i = 0; tool_format_at(i); i++)
        if (strcmp(tool_format_at(i)->name, name) == 0)
            return tool_format_at(i);
    return NULL;
}

void tool_reply_finish(struct tool_reply *reply)
{
    for (size_t i = 0; i < reply->count; i++) {
        free(reply->calls[i].name);
        json_decref(reply->calls[i].arguments);
    }
    reply->count = 0;
}

/* ---- an example --------------------------------------------------------------------------- */

static json_t *example_value(const struct tool_argument *argument)
{
    switch (argument->type) {
    case TOOL_INTEGER: return json_integer(argument->min > 1 ? (json_int_t)argument->min : 1);
    case TOOL_BOOLEAN: return json_true();
    case TOOL_INTEGERS: return json_pack("[i,i]", 1, 2);
    default: break;
    }
    const char *words = argument->words;
    return words ? json_stringn(words, strcspn(words, "|")) : json_string("...");
}

/* The required arguments, or else the first. */
static json_t *example_arguments(const struct tool *tool)
{
    json_t *arguments = json_object();
    for (const struct tool_argument *at = tool->arguments; arguments && at->name; at++)
        if (at->required && json_object_set_new(arguments, at->name, example_value(at)) < 0)
            return json_decref(arguments), NULL;
    const struct tool_argument *first = tool->arguments;
    if (arguments && json_object_size(arguments) == 0 && first->name &&
        json_object_set_new(arguments, first->name, example_value(first)) < 0)
        return json_decref(arguments), NULL;
    return arguments;
}

bool tool_format_example(const struct tool_format *format, const struct tool *tool, struct buffer *out)
{
    json_t *arguments = example_arguments(tool);
    if (!arguments)
        return false;
    format->say(tool->name, arguments, out);
    json_decref(arguments);
    return !out->failed;
}

/* ---- a reply ------------------------------------------------------------------------------- */

/* Whether a line outside of thinking begins with this marker. */
static bool has_line(const char *marker, const char *text)
{
    struct tool_reply unused;
    struct reading reading = reading_start(NULL, text, &unused);
    const char *start = reading.at;
    for (const char *at; (at = reading_find(&reading, marker)); reading.at = at + strlen(marker))
        if (at == start || at[-1] == '\n')
            return true;
    return false;
}

/* Whether there is a call of another form: its own reader would have found one of `own`. */
static bool is_foreign(const struct tool_format *own, const char *text)
{
    for (size_t i = 0; tool_format_at(i); i++)
        if (tool_format_at(i) != own && has_line(tool_format_at(i)->marker, text))
            return true;
    return false;
}

static void add_example(const struct tool_format *format, const struct toolbox *box, struct tool_reply *reply)
{
    AUTO_BUFFER example = {0};
    const size_t len = strlen(reply->wrong);
    if (box->count > 0 && tool_format_example(format, box->tools[0], &example))
        snprintf(reply->wrong + len, sizeof(reply->wrong) - len, " A call looks like this:\n%.*s",
                 SLICE_ARG(buffer_peek(&example)));
}

void tool_format_read(const struct tool_format *format, const struct toolbox *box, const char *text,
                      struct tool_reply *ret)
{
    format->read(box, text, ret);
    const bool is_empty = ret->count == 0 && !ret->wrong[0];
    if (is_empty && ret->is_thinking)
        snprintf(ret->wrong, sizeof(ret->wrong),
                 "That reply ends within <think>, so nothing was run. Close it with </think>, and "
                 "say behind it what you want to do.");
    else if (is_empty && is_foreign(format, text))
        snprintf(ret->wrong, sizeof(ret->wrong),
                 "There is a call in that reply in a form that is not read here, so nothing was "
                 "run.");
    if (!ret->wrong[0])
        return;
    tool_reply_finish(ret);
    add_example(format, box, ret);
}
