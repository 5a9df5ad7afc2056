#include "workers/agents/proxy/dialects/anthropic_tools.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/dialects/body_messages.h"

bool anthropic_read_tool(struct body *body, const struct body_place *tool)
{
    const struct body_place type = body_in(tool, "type");
    const char *word = "custom";
    bool is_held_back = false;
    if (tool->at >= ANTHROPIC_TOOLS_MAX)
        return body_refuse(body, tool, "there are more than %d tools", ANTHROPIC_TOOLS_MAX);
    if (!body_word(body, tool, "type", &word) || !body_flag(body, tool, "defer_loading", &is_held_back))
        return false;
    if (strcmp(word, "custom") != 0)
        return body_refuse(body, &type, "\"%.64s\": tools of the provider's are not supported", word);
    return is_held_back || body_add_tool(body, tool, NULL, "input_schema");
}

/* The tool of that name, held back or not; NULL: there is none, as where its server has gone since. */
static const json_t *find_tool(const struct body_place *place, const char *name)
{
    while (place->in)
        place = place->in;
    const json_t *tools = json_object_get(place->value, "tools");
    for (size_t i = 0; i < json_array_size(tools) && i < ANTHROPIC_TOOLS_MAX; i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *other = json_string_value(json_object_get(tool, "name"));
        if (other && strcmp(other, name) == 0)
            return tool;
    }
    return NULL;
}

/* The caller's; NULL: out of memory. */
static char *function_line(const char *name, const json_t *tool)
{
    json_t *function = json_pack("{s:O*, s:s, s:O*}", "description", json_object_get(tool, "description"), "name", name,
                                 "parameters", json_object_get(tool, "input_schema"));
    AUTO_FREE char *json = function ? json_dumps(function, JSON_COMPACT) : NULL;
    struct buffer line = {0};
    json_decref(function);
    if (!json)
        return NULL;
    buffer_printf(&line, "<function>%s</function>", json);
    return buffer_take_str(&line);
}

static bool is_reference(const struct body_place *list, size_t at)
{
    const struct body_place block = body_at(list, at);
    return body_says(&block, "type", "tool_reference");
}

/* References in a row are lines of one <functions>, which is how the harness tells the model that they will come. */
bool anthropic_unfold_tool(struct body *body, const struct body_place *reference)
{
    const char *name = NULL;
    if (!body_needed_word(body, reference, "tool_name", &name))
        return false;
    AUTO_FREE char *line = function_line(name, find_tool(reference, name));
    if (!line)
        return body_out_of_memory(body);
    body->unfolded += strlen(line);
    if (body->unfolded > ANTHROPIC_UNFOLDED_MAX)
        return body_refuse(body, reference, "the tools that were found come to more than %d bytes",
                           ANTHROPIC_UNFOLDED_MAX);
    const bool is_first = reference->at == 0 || !is_reference(reference->in, reference->at - 1);
    return (!is_first || body_add_words(body, "<functions>")) && body_add_words(body, line) &&
           (is_reference(reference->in, reference->at + 1) || body_add_words(body, "</functions>"));
}
