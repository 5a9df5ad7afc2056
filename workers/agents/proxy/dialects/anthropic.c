/* anthropic.c - Anthropic's Messages, as Claude Code speaks it: what is asked. What is answered: anthropic_reply.c. */
#include "workers/agents/proxy/dialects/anthropic_reply.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/dialects/anthropic_tools.h"
#include "workers/agents/proxy/dialects/body_messages.h"
#include "workers/agents/proxy/dialects/dialects.h"

static bool match(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream, struct slice *model)
{
    const bool counts = strcmp(path, "/v1/messages/count_tokens") == 0;
    *ask = counts ? ASK_COUNT_TOKENS : ASK_TURN;
    *is_stream = false;
    *model = slice_of(NULL, 0);
    return strcmp(method, "POST") == 0 && (counts || strcmp(path, "/v1/messages") == 0);
}

/* ---- the system prompt ------------------------------------------------------------------------- */

/* Its bytes change with every call, and are for a bill that nobody writes here. */
#define BILLING "x-anthropic-billing-header:"

static bool is_billing(const char *line) { return strncmp(line, BILLING, strlen(BILLING)) == 0; }

/* Takes such lines out of a text, in place. */
static void strip_billing(char *text)
{
    char *to = text;
    for (const char *line = text; *line;) {
        const size_t len = strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n');
        if (!is_billing(line)) {
            memmove(to, line, len);
            to += len;
        } else if (!line[len] && line[len - 1] != '\n' && to > text) {
            to--; /* it was the last: so is the line end before it */
        }
        line += len;
    }
    *to = '\0';
}

static bool read_system(struct body *body, const struct body_place *root)
{
    const struct body_place system = body_in(root, "system");
    if (!system.value)
        return true;
    if (!body_begin(body, &system, SAID_SYSTEM) || !body_add_content(body, &system, "text") || !body_end(body))
        return false;
    struct said *message = &body->request->messages[body->request->count - 1];
    strip_billing(message->text);
    if (!message->text[0]) {
        free(message->text);
        body->request->count--; /* nothing was said */
    }
    return true;
}

/* ---- messages ---------------------------------------------------------------------------------- */

static const struct body_role roles[] = {
    {"system", SAID_SYSTEM}, {"user", SAID_USER}, {"assistant", SAID_ASSISTANT}, {NULL}};

static bool read_text(struct body *body, const struct body_place *block)
{
    const struct body_place text = body_in(block, "text");
    return text.value ? body_add_text(body, block, "text") : body_refuse_kind(body, &text, "a string");
}

static bool read_thinking(struct body *body, const struct body_place *block)
{
    const char *signature = NULL;
    return body_add_thinking(body, block, "thinking") && body_word(body, block, "signature", &signature) &&
           body_add_handle(body, signature && signature[0] ? signature : NULL, "");
}

static bool read_call(struct body *body, const struct body_place *block)
{
    struct said_call *call = body_add_call(body, block);
    return call && body_name(body, block, "id", &call->id) && body_name(body, block, "name", &call->name) &&
           body_arguments(body, block, "input", call);
}

static bool refuse_type(struct body *body, const struct body_place *block)
{
    const struct body_place type = body_in(block, "type");
    return body_refuse_word(body, &type);
}

static bool read_result_block(struct body *body, const struct body_place *block)
{
    if (body_says(block, "type", "tool_reference"))
        return anthropic_unfold_tool(body, block);
    return body_says(block, "type", "text") ? read_text(body, block) : refuse_type(body, block);
}

static bool read_result(struct body *body, const struct body_place *block)
{
    const struct body_place content = body_in(block, "content");
    if (!body_begin(body, block, SAID_TOOL))
        return false;
    struct said *result = body_message(body);
    return body_name(body, block, "tool_use_id", &result->call_id) &&
           body_flag(body, block, "is_error", &result->is_error) &&
           (json_is_array(content.value) ? body_each(body, &content, read_result_block)
                                         : body_add_content(body, &content, "text"));
}

static bool read_assistant_block(struct body *body, const struct body_place *block)
{
    if (body_says(block, "type", "text"))
        return read_text(body, block);
    if (body_says(block, "type", "thinking"))
        return read_thinking(body, block);
    return body_says(block, "type", "tool_use") ? read_call(body, block) : refuse_type(body, block);
}

/* A result is a message of its own; what is said around it is the user's. */
static bool read_user_block(struct body *body, const struct body_place *block)
{
    const struct said *message = body_message(body);
    if (body_says(block, "type", "tool_result"))
        return read_result(body, block);
    if (!body_says(block, "type", "text"))
        return refuse_type(body, block);
    return ((message && message->role == SAID_USER) || body_begin(body, block, SAID_USER)) && read_text(body, block);
}

static bool read_user(struct body *body, const struct body_place *message, const struct body_place *content)
{
    if (json_array_size(content->value) > 0)
        return body_end(body) && body_each(body, content, read_user_block);
    return body_begin(body, message, SAID_USER) && body_add_content(body, content, "text");
}

static bool read_message(struct body *body, const struct body_place *message)
{
    const struct body_place content = body_in(message, "content");
    enum said_role role;
    if (!body_role(body, message, roles, &role))
        return false;
    if (!json_is_string(content.value) && !json_is_array(content.value))
        return body_refuse_kind(body, &content, "a string or a list of blocks");
    if (role == SAID_USER)
        return read_user(body, message, &content);
    if (!body_begin(body, message, role))
        return false;
    return role == SAID_ASSISTANT && json_is_array(content.value) ? body_each(body, &content, read_assistant_block)
                                                                  : body_add_content(body, &content, "text");
}

/* What the assistant's last message begins, this API goes on with; a turn here is sampled whole. */
static bool read_messages(struct body *body, const struct body_place *root)
{
    const struct body_place messages = body_in(root, "messages");
    const size_t count = json_array_size(messages.value);
    if (!body_each(body, &messages, read_message))
        return false;
    const struct body_place last = body_at(&messages, count - 1);
    return !body_says(&last, "role", "assistant") ||
           body_refuse(body, &last,
                       "the last message is the assistant's: a turn that is begun for it is not supported");
}

/* ---- a request --------------------------------------------------------------------------------- */

static bool read_tools(struct body *body, const struct body_place *root)
{
    const struct body_place tools = body_in(root, "tools"), choice = body_in(root, "tool_choice");
    const struct body_place type = body_in(&choice, "type");
    return body_each(body, &tools, anthropic_read_tool) && body_object(body, &choice) &&
           body_tool_choice(body, &type, "auto", "none");
}

static bool read_constraints(struct body *body, const struct body_place *root)
{
    const struct body_place config = body_in(root, "output_config");
    static const char forced[] = "a format that is forced on the model is not supported";
    return body_lacks(body, root, "stop_sequences", "sequences that end a turn are not supported") &&
           body_lacks(body, root, "mcp_servers", "tools of the provider's are not supported") &&
           body_lacks(body, root, "container", "containers of the provider's are not supported") &&
           body_lacks(body, root, "output_format", forced) && body_object(body, &config) &&
           body_lacks(body, &config, "format", forced);
}

static bool read_root(struct body *body, const struct body_place *root)
{
    body->request->wants_usage = true;
    return read_constraints(body, root) && read_system(body, root) && read_messages(body, root) &&
           read_tools(body, root) && body_flag(body, root, "stream", &body->request->is_stream) &&
           body_number(body, root, "max_tokens", &body->request->max_tokens);
}

static int read_body(const json_t *body, struct said_request *ret, struct fail *fail)
{
    return body_run(body, read_root, ret, fail);
}

const struct dialect dialect_anthropic = {
    .name = "anthropic",
    .match = match,
    .read = read_body,
    .write = anthropic_write,
    .stream_begin = anthropic_stream_begin,
    .stream_thinking = anthropic_stream_thinking,
    .stream_text = anthropic_stream_text,
    .stream_end = anthropic_stream_end,
    .keep_alive = ": keep-alive\n\n",
    .write_error = anthropic_write_error,
    .stream_error = anthropic_stream_error,
    .write_count = anthropic_write_count,
};
