/* responses.c - OpenAI's Responses, as Codex speaks it: what is asked. What is answered is in responses_reply.c. */
#include "workers/agents/proxy/dialects/responses_reply.h"

#include <string.h>

#include "workers/agents/proxy/dialects/body_messages.h"
#include "workers/agents/proxy/dialects/dialects.h"
#include "workers/agents/proxy/dialects/openai.h"

static bool match(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream, struct slice *model)
{
    const bool counts = strcmp(path, "/v1/responses/input_tokens") == 0;
    *ask = counts ? ASK_COUNT_TOKENS : ASK_TURN;
    *is_stream = false;
    *model = slice_of(NULL, 0);
    return strcmp(method, "POST") == 0 && (counts || strcmp(path, "/v1/responses") == 0);
}

/* ---- items ------------------------------------------------------------------------------------- */

/*
 * A turn of the model's comes back as items in a row: reasoning, a message, calls, each of which may be missing. One
 * that cannot come behind what was read of the message in hand belongs to another turn.
 */
enum step { STEP_REASONING = 1, STEP_MESSAGE, STEP_CALL };

static bool take_turn(struct body *body, const struct body_place *item, enum step step)
{
    const struct said *turn = body_message(body);
    const bool goes_on = turn && turn->role == SAID_ASSISTANT && (step > body->step || step == STEP_CALL);
    if (!goes_on && !body_begin(body, item, SAID_ASSISTANT))
        return false;
    body->step = step;
    return true;
}

static const struct body_role roles[] = {
    {"system", SAID_SYSTEM}, {"developer", SAID_SYSTEM}, {"user", SAID_USER}, {"assistant", SAID_ASSISTANT}, {NULL}};

static bool read_message(struct body *body, const struct body_place *item)
{
    const struct body_place content = body_in(item, "content");
    const char *id = NULL;
    enum said_role role;
    if (!body_role(body, item, roles, &role) || !body_word(body, item, "id", &id))
        return false;
    if (!content.value)
        return body_refuse_kind(body, &content, "a string or a list of parts");
    if (role == SAID_ASSISTANT)
        return take_turn(body, item, STEP_MESSAGE) && body_add_handle(body, id, RESPONSES_MESSAGE_ID) &&
               body_add_content(body, &content, "output_text|input_text|text|refusal");
    return body_begin(body, item, role) && body_add_content(body, &content, "input_text|output_text|text");
}

static bool read_thought(struct body *body, const struct body_place *part, const char *types)
{
    const struct body_place type = body_in(part, "type");
    return body_one_of(body, &type, types) && body_add_thinking(body, part, "text");
}

/* Its content is the thinking itself, where there is some, and the summary is what was made of it. */
static bool read_reasoning(struct body *body, const struct body_place *item)
{
    const struct body_place summary = body_in(item, "summary"), content = body_in(item, "content");
    const char *handle = NULL;
    if (!take_turn(body, item, STEP_REASONING) || !body_word(body, item, "encrypted_content", &handle) ||
        !body_add_handle(body, handle, ""))
        return false;
    if (json_array_size(content.value) > 0)
        return body_each_with(body, &content, read_thought, "reasoning_text");
    return body_list(body, &content) && body_each_with(body, &summary, read_thought, "summary_text");
}

static bool read_call(struct body *body, const struct body_place *item)
{
    const char *space = NULL;
    if (!take_turn(body, item, STEP_CALL) || !body_word(body, item, "namespace", &space))
        return false;
    struct said_call *call = body_add_call(body, item);
    return call && body_name(body, item, "call_id", &call->id) && body_name(body, item, "name", &call->name) &&
           body_put_space(body, space, &call->name) && body_arguments_text(body, item, "arguments", call);
}

static bool read_result(struct body *body, const struct body_place *item)
{
    const struct body_place output = body_in(item, "output");
    if (!body_begin(body, item, SAID_TOOL) || !body_name(body, item, "call_id", &body_message(body)->call_id))
        return false;
    if (!output.value)
        return body_refuse_kind(body, &output, "a string or a list of parts");
    return body_add_content(body, &output, "input_text|output_text|text");
}

static bool read_item(struct body *body, const struct body_place *item)
{
    static const struct {
        const char *type;
        bool (*read)(struct body *body, const struct body_place *item);
    } kinds[] = {{"message", read_message},
                 {"reasoning", read_reasoning},
                 {"function_call", read_call},
                 {"function_call_output", read_result}};
    const struct body_place type = body_in(item, "type");
    const char *word = "message"; /* which may leave it out */
    if (!body_word(body, item, "type", &word))
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(kinds[i].type, word) == 0)
            return kinds[i].read(body, item);
    return body_refuse_word(body, &type);
}

/* ---- tools ------------------------------------------------------------------------------------- */

/* Not offered to the model: what it cannot call as a function, and Codex offers whatever it is told. */
static bool is_left_out(const char *type)
{
    return strcmp(type, "custom") == 0 || strncmp(type, "web_search", 10) == 0;
}

static bool name_is_whole(struct body *body, const struct body_place *tool)
{
    const struct body_place name = body_in(tool, "name");
    return !json_is_string(name.value) || !strchr(json_string_value(name.value), RESPONSES_SPACE) ||
           body_refuse(body, &name, "'%c' stands between a namespace and a name, and in neither", RESPONSES_SPACE);
}

/* `space`: of the namespace that it stands in, or NULL. */
static bool read_function(struct body *body, const struct body_place *tool, const char *space)
{
    const struct body_place type = body_in(tool, "type");
    const char *word = NULL;
    if (!body_needed_word(body, tool, "type", &word))
        return false;
    if (is_left_out(word))
        return true;
    if (strcmp(word, "function") != 0)
        return body_refuse_word(body, &type);
    return name_is_whole(body, tool) && body_add_tool(body, tool, space, "parameters");
}

static bool read_namespace(struct body *body, const struct body_place *tool)
{
    const struct body_place tools = body_in(tool, "tools");
    const char *space = NULL;
    return body_needed_word(body, tool, "name", &space) && name_is_whole(body, tool) &&
           body_each_with(body, &tools, read_function, space);
}

static bool read_tool(struct body *body, const struct body_place *tool)
{
    return body_says(tool, "type", "namespace") ? read_namespace(body, tool) : read_function(body, tool, NULL);
}

/* ---- a request --------------------------------------------------------------------------------- */

static bool read_instructions(struct body *body, const struct body_place *root)
{
    const struct body_place instructions = body_in(root, "instructions");
    if (!instructions.value || (json_is_string(instructions.value) && json_string_length(instructions.value) == 0))
        return true;
    return body_begin(body, &instructions, SAID_SYSTEM) && body_add_text(body, root, "instructions");
}

static bool read_input(struct body *body, const struct body_place *root)
{
    const struct body_place input = body_in(root, "input");
    if (json_is_string(input.value))
        return body_begin(body, &input, SAID_USER) && body_add_text(body, root, "input");
    return json_is_array(input.value) ? body_each(body, &input, read_item)
                                      : body_refuse_kind(body, &input, "a string or a list of items");
}

static bool read_constraints(struct body *body, const struct body_place *root)
{
    const struct body_place text = body_in(root, "text"), format = body_in(&text, "format");
    static const char *const kept[] = {"previous_response_id", "conversation", "prompt"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        if (!body_lacks(body, root, kept[i], "nothing is kept between requests: say all of it in input"))
            return false;
    return body_object(body, &text) && openai_format_is_text(body, &format) &&
           body_lacks(body, root, "background", "answers are given at once only");
}

static bool read_root(struct body *body, const struct body_place *root)
{
    const struct body_place tools = body_in(root, "tools"), choice = body_in(root, "tool_choice");
    body->request->wants_usage = true;
    return read_constraints(body, root) && read_instructions(body, root) && read_input(body, root) &&
           body_each(body, &tools, read_tool) && body_tool_choice(body, &choice, "auto", "none") &&
           body_flag(body, root, "stream", &body->request->is_stream) &&
           body_number(body, root, "max_output_tokens", &body->request->max_tokens);
}

static int read_body(const json_t *body, struct said_request *ret, struct fail *fail)
{
    return body_run(body, read_root, ret, fail);
}

const struct dialect dialect_responses = {
    .name = "responses",
    .match = match,
    .read = read_body,
    .write = responses_write,
    .stream_begin = responses_stream_begin,
    .stream_thinking = responses_stream_thinking,
    .stream_text = responses_stream_text,
    .stream_end = responses_stream_end,
    .keep_alive = ": keep-alive\n\n",
    .write_error = openai_write_error,
    .stream_error = responses_stream_error,
    .write_count = openai_write_count,
};
