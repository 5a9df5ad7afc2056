/* chat.c - OpenAI's Chat Completions, as mini-swe-agent, opencode and Qwen Code speak it. */
#include <string.h>

#include "workers/agents/proxy/dialects/body_messages.h"
#include "workers/agents/proxy/dialects/dialects.h"
#include "workers/agents/proxy/dialects/events.h"
#include "workers/agents/proxy/dialects/openai.h"

static bool match(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream, struct slice *model)
{
    const bool asks_models = strcmp(method, "GET") == 0 && strcmp(path, "/v1/models") == 0;
    *ask = asks_models ? ASK_MODELS : ASK_TURN;
    *is_stream = false;
    *model = slice_of(NULL, 0);
    return asks_models || (strcmp(method, "POST") == 0 && strcmp(path, "/v1/chat/completions") == 0);
}

/* ---- a request -------------------------------------------------------------------------------- */

static const struct body_role roles[] = {{"system", SAID_SYSTEM},       {"developer", SAID_SYSTEM}, {"user", SAID_USER},
                                         {"assistant", SAID_ASSISTANT}, {"tool", SAID_TOOL},        {NULL}};

static bool read_call(struct body *body, const struct body_place *place)
{
    const struct body_place type = body_in(place, "type"), function = body_in(place, "function");
    const char *word = "function";
    struct said_call *call = body_add_call(body, place);
    if (!call || !body_name(body, place, "id", &call->id) || !body_word(body, place, "type", &word))
        return false;
    if (strcmp(word, "function") != 0)
        return body_refuse_word(body, &type);
    if (!json_is_object(function.value))
        return body_refuse_kind(body, &function, "an object");
    return body_name(body, &function, "name", &call->name) && body_arguments_text(body, &function, "arguments", call);
}

/* Servers call it by one of two names, and some harnesses give it back under both. */
static bool read_thinking(struct body *body, const struct body_place *message)
{
    const struct body_place thinking = body_in(message, "reasoning_content");
    return body_add_thinking(body, message, thinking.value ? "reasoning_content" : "reasoning");
}

static bool read_assistant(struct body *body, const struct body_place *message)
{
    const struct body_place calls = body_in(message, "tool_calls");
    return body_lacks(body, message, "function_call", "use tool_calls") && read_thinking(body, message) &&
           body_each(body, &calls, read_call);
}

static bool read_result(struct body *body, const struct body_place *message)
{
    struct said *said = body_message(body);
    return body_name(body, message, "tool_call_id", &said->call_id) && body_text(body, message, "name", &said->name);
}

static bool read_message(struct body *body, const struct body_place *message)
{
    const struct body_place content = body_in(message, "content");
    enum said_role role;
    if (!body_role(body, message, roles, &role) || !body_begin(body, message, role))
        return false;
    if (!content.value && role != SAID_ASSISTANT)
        return body_refuse_kind(body, &content, "a string or a list of parts");
    if (!body_add_content(body, &content, role == SAID_ASSISTANT ? "text|refusal" : "text"))
        return false;
    return role == SAID_ASSISTANT ? read_assistant(body, message) : role != SAID_TOOL || read_result(body, message);
}

static bool read_tool(struct body *body, const struct body_place *tool)
{
    const struct body_place type = body_in(tool, "type"), function = body_in(tool, "function");
    if (!body_one_of(body, &type, "function"))
        return false;
    if (!json_is_object(function.value))
        return body_refuse_kind(body, &function, "an object");
    return body_add_tool(body, &function, NULL, "parameters");
}

static bool read_tools(struct body *body, const struct body_place *root)
{
    const struct body_place tools = body_in(root, "tools"), choice = body_in(root, "tool_choice");
    return body_lacks(body, root, "functions", "use tools") && body_each(body, &tools, read_tool) &&
           body_tool_choice(body, &choice, "auto", "none");
}

/* What would change what the model samples, or how much of it. */
static bool read_constraints(struct body *body, const struct body_place *root)
{
    static const char *const guides[] = {
        "logit_bias", "guided_json",        "guided_regex", "guided_choice",      "guided_grammar",
        "grammar",    "structured_outputs", "audio",        "web_search_options", "continue_final_message"};
    const struct body_place format = body_in(root, "response_format"), modalities = body_in(root, "modalities");
    for (size_t i = 0; i < sizeof(guides) / sizeof(*guides); i++)
        if (!body_lacks(body, root, guides[i], "this is not supported"))
            return false;
    return body_each_one_of(body, &modalities, "text") && openai_format_is_text(body, &format) &&
           body_wants_one(body, root, "n") &&
           body_lacks(body, root, "stop", "sequences that end a turn are not supported");
}

static bool read_root(struct body *body, const struct body_place *root)
{
    const struct body_place messages = body_in(root, "messages"), options = body_in(root, "stream_options");
    struct said_request *request = body->request;
    return read_constraints(body, root) && body_each(body, &messages, read_message) && read_tools(body, root) &&
           body_flag(body, root, "stream", &request->is_stream) && body_object(body, &options) &&
           body_flag(body, &options, "include_usage", &request->wants_usage) &&
           body_number(body, root, "max_tokens", &request->max_tokens) &&
           body_number(body, root, "max_completion_tokens", &request->max_tokens);
}

static int read_body(const json_t *body, struct said_request *ret, struct fail *fail)
{
    return body_run(body, read_root, ret, fail);
}

/* ---- an answer -------------------------------------------------------------------------------- */

static const char *finish_word(enum reply_finish finish)
{
    return finish == REPLY_LENGTH ? "length" : finish == REPLY_CALLS ? "tool_calls" : "stop";
}

static json_t *usage(const struct reply *reply)
{
    return json_pack("{s:o, s:o, s:o, s:{s:o}}", "prompt_tokens", event_number(reply->prompt_tokens),
                     "completion_tokens", event_number(reply->sampled_tokens), "total_tokens",
                     event_number(reply->prompt_tokens + reply->sampled_tokens), "prompt_tokens_details",
                     "cached_tokens", event_number(reply->cached_tokens));
}

static json_t *call_json(const struct reply_call *call)
{
    return json_pack("{s:o, s:s, s:{s:o, s:o}}", "id", event_str(call->id), "type", "function", "function", "name",
                     event_str(call->name), "arguments", event_arguments(call->arguments));
}

static json_t *message_json(const struct reply *reply, struct buffer *out)
{
    const bool is_calls_only = reply->call_count > 0 && !event_has_text(reply);
    json_t *calls = reply->call_count ? json_array() : NULL;
    for (size_t i = 0; i < reply->call_count; i++)
        event_append(calls, call_json(&reply->calls[i]), out);
    return json_pack("{s:s, s:o, s:o*, s:o*, s:n}", "role", "assistant", "content",
                     is_calls_only ? json_null() : event_str(reply->text), "reasoning_content",
                     reply->thinking ? event_str(reply->thinking) : NULL, "tool_calls", calls, "refusal");
}

static void write_reply(const struct reply *reply, struct buffer *out)
{
    event_json(out,
               json_pack("{s:o, s:s, s:I, s:o, s:[{s:i, s:o, s:n, s:s}], s:o}", "id", event_id("chatcmpl-", reply->id),
                         "object", "chat.completion", "created", (json_int_t)reply->created, "model",
                         event_str(reply->model), "choices", "index", 0, "message", message_json(reply, out),
                         "logprobs", "finish_reason", finish_word(reply->finish), "usage", usage(reply)));
}

/* ---- as events -------------------------------------------------------------------------------- */

/* `choice`: the only one's difference, or NULL where there is none. */
static void put_chunk(const struct reply *reply, json_t *choices, json_t *used, struct buffer *out)
{
    event_put(out, NULL,
              json_pack("{s:o, s:s, s:I, s:o, s:o, s:o*}", "id", event_id("chatcmpl-", reply->id), "object",
                        "chat.completion.chunk", "created", (json_int_t)reply->created, "model",
                        event_str(reply->model), "choices", choices, "usage", used));
}

static void put_delta(const struct reply *reply, json_t *delta, const char *finish, struct buffer *out)
{
    json_t *choices = json_pack("[{s:i, s:o, s:n, s:s?}]", "index", 0, "delta", delta, "logprobs", "finish_reason",
                                finish);
    put_chunk(reply, choices, NULL, out);
}

static void stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    (void)stream;
    put_delta(reply, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL, out);
}

static void stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                            struct buffer *out)
{
    put_delta(reply, json_pack("{s:o}", "reasoning_content", event_text(piece)), NULL, out);
    stream->thought += piece.len;
}

/* An empty one is told, too. */
static void end_thinking(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    const struct slice rest = event_rest_of_thinking(stream, reply);
    if (stream->blocks++ == 0 && reply->thinking && (rest.len > 0 || stream->thought == 0))
        stream_thinking(stream, reply, rest, out);
}

static void stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece, struct buffer *out)
{
    end_thinking(stream, reply, out);
    if (piece.len > 0)
        put_delta(reply, json_pack("{s:o}", "content", event_text(piece)), NULL, out);
    stream->said += piece.len;
}

static void put_call(const struct reply *reply, size_t at, struct buffer *out)
{
    json_t *call = call_json(&reply->calls[at]);
    if (!call || json_object_set_new(call, "index", json_integer((json_int_t)at)) < 0)
        out->failed = true;
    put_delta(reply, json_pack("{s:[o]}", "tool_calls", call), NULL, out);
}

static void stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out)
{
    stream_text(stream, reply, event_rest(stream, reply), out);
    for (size_t i = 0; i < reply->call_count; i++)
        put_call(reply, i, out);
    put_delta(reply, json_object(), finish_word(reply->finish), out);
    if (wants_usage)
        put_chunk(reply, json_array(), usage(reply), out);
    buffer_append_str(out, "data: [DONE]\n\n");
}

/* No [DONE] follows: what knows no errors in a stream shall not take it for whole. */
static void stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out)
{
    (void)stream;
    event_put(out, NULL, openai_error(error, words));
}

const struct dialect dialect_chat = {
    .name = "chat",
    .match = match,
    .read = read_body,
    .write = write_reply,
    .stream_begin = stream_begin,
    .stream_thinking = stream_thinking,
    .stream_text = stream_text,
    .stream_end = stream_end,
    .keep_alive = ": keep-alive\n\n",
    .write_error = openai_write_error,
    .stream_error = stream_error,
    .write_count = openai_write_count,
};
