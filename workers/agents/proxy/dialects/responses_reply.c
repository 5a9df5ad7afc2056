#include "workers/agents/proxy/dialects/responses_reply.h"

#include <string.h>

#include "workers/agents/proxy/dialects/events.h"
#include "workers/agents/proxy/dialects/openai.h"

/* ---- items ------------------------------------------------------------------------------------- */

static json_t *reasoning_id(const struct reply *reply) { return event_id("rs_", reply->id); }

static json_t *summary_part(const char *thinking)
{
    return json_pack("{s:s, s:o}", "type", "summary_text", "text", event_str(thinking));
}

/* `summary`: a list of parts. */
static json_t *reasoning_item(const struct reply *reply, json_t *summary, const char *status)
{
    return json_pack("{s:o, s:s, s:o, s:o, s:s}", "id", reasoning_id(reply), "type", "reasoning", "summary", summary,
                     "encrypted_content", event_str(reply->handle), "status", status);
}

static json_t *whole_reasoning(const struct reply *reply)
{
    return reasoning_item(reply, json_pack("[o]", summary_part(reply->thinking)), "completed");
}

static json_t *text_part(const char *text)
{
    return json_pack("{s:s, s:o, s:[], s:[]}", "type", "output_text", "text", event_str(text), "annotations",
                     "logprobs");
}

static json_t *message_id(const struct reply *reply) { return event_id(RESPONSES_MESSAGE_ID, reply->handle); }

/* `parts`: a list. */
static json_t *message_item(const struct reply *reply, json_t *parts, const char *status)
{
    return json_pack("{s:o, s:s, s:s, s:s, s:o}", "id", message_id(reply), "type", "message", "role", "assistant",
                     "status", status, "content", parts);
}

static json_t *call_item(const struct reply_call *call, json_t *arguments, const char *status)
{
    const char *dot = strchr(call->name, RESPONSES_SPACE);
    return json_pack("{s:o, s:s, s:o, s:o*, s:o, s:o, s:s}", "id", event_id("fc_", call->id), "type", "function_call",
                     "call_id", event_str(call->id), "namespace",
                     dot ? event_text(slice_of(call->name, (size_t)(dot - call->name))) : NULL, "name",
                     event_str(dot ? dot + 1 : call->name), "arguments", arguments, "status", status);
}

/* Without calls there is always a message, for its id carries the handle. */
static bool has_message(const struct reply *reply) { return event_has_text(reply) || reply->call_count == 0; }

static const char *text_status(const struct reply *reply)
{
    return reply->finish == REPLY_LENGTH ? "incomplete" : "completed";
}

static json_t *all_items(const struct reply *reply, bool has_text, struct buffer *out)
{
    json_t *items = json_array();
    if (reply->thinking)
        event_append(items, whole_reasoning(reply), out);
    if (has_text)
        event_append(items, message_item(reply, json_pack("[o]", text_part(reply->text)), text_status(reply)), out);
    for (size_t i = 0; i < reply->call_count; i++) {
        const struct reply_call *call = &reply->calls[i];
        event_append(items, call_item(call, event_arguments(call->arguments), "completed"), out);
    }
    return items;
}

/* ---- an answer --------------------------------------------------------------------------------- */

static json_t *usage(const struct reply *reply)
{
    return json_pack("{s:o, s:{s:o, s:i}, s:o, s:{s:i}, s:o}", "input_tokens", event_number(reply->prompt_tokens),
                     "input_tokens_details", "cached_tokens", event_number(reply->cached_tokens), "cache_write_tokens",
                     0, "output_tokens", event_number(reply->sampled_tokens), "output_tokens_details",
                     "reasoning_tokens", 0, "total_tokens", event_number(reply->prompt_tokens + reply->sampled_tokens));
}

/* `error`, `incomplete`, `used`: NULL for none. */
static json_t *response(const struct reply *reply, const char *status, json_t *items, json_t *error, json_t *used)
{
    json_t *incomplete = strcmp(status, "incomplete") == 0 ? json_pack("{s:s}", "reason", "max_output_tokens") : NULL;
    return json_pack("{s:o, s:s, s:I, s:s, s:b, s:o?, s:o?, s:n, s:n, s:{}, s:o, s:o, s:b, s:n, s:{s:n, s:n}, s:b, "
                     "s:n, s:{s:{s:s}}, s:s, s:[], s:n, s:s, s:o?}",
                     "id", event_id("resp_", reply->id), "object", "response", "created_at", (json_int_t)reply->created,
                     "status", status, "background", 0, "error", error, "incomplete_details", incomplete,
                     "instructions", "max_output_tokens", "metadata", "model", event_str(reply->model), "output", items,
                     "parallel_tool_calls", 1, "previous_response_id", "reasoning", "effort", "summary", "store", 0,
                     "temperature", "text", "format", "type", "text", "tool_choice", "auto", "tools", "top_p",
                     "truncation", "disabled", "usage", used);
}

static json_t *whole_response(const struct reply *reply, bool has_text, struct buffer *out)
{
    return response(reply, text_status(reply), all_items(reply, has_text, out), NULL, usage(reply));
}

void responses_write(const struct reply *reply, struct buffer *out)
{
    event_json(out, whole_response(reply, has_message(reply), out));
}

/* ---- as events --------------------------------------------------------------------------------- */

/* The rest of an event, behind its type and its number. */
static void put(struct reply_stream *stream, const char *type, json_t *rest, struct buffer *out)
{
    json_t *event = json_pack("{s:s, s:o}", "type", type, "sequence_number", event_number(stream->sequence++));
    if (!rest || !event || json_object_update(event, rest) < 0)
        out->failed = true;
    json_decref(rest);
    event_put(out, type, event);
}

void responses_stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    put(stream, "response.created",
        json_pack("{s:o}", "response", response(reply, "in_progress", json_array(), NULL, NULL)), out);
    put(stream, "response.in_progress",
        json_pack("{s:o}", "response", response(reply, "in_progress", json_array(), NULL, NULL)), out);
}

/* Of the item that was begun last. */
static json_int_t item_index(const struct reply_stream *stream) { return (json_int_t)stream->blocks - 1; }

static void put_item(struct reply_stream *stream, const char *type, json_t *item, struct buffer *out)
{
    put(stream, type, json_pack("{s:I, s:o}", "output_index", item_index(stream), "item", item), out);
}

static void put_added(struct reply_stream *stream, json_t *item, struct buffer *out)
{
    stream->blocks++;
    put_item(stream, "response.output_item.added", item, out);
}

static void put_done(struct reply_stream *stream, json_t *item, struct buffer *out)
{
    put_item(stream, "response.output_item.done", item, out);
}

/* The text's, of the message's only part. */
static json_t *at_part(const struct reply_stream *stream, const struct reply *reply, const char *key, json_t *value)
{
    return json_pack("{s:o, s:I, s:i, s:o}", "item_id", message_id(reply), "output_index", item_index(stream),
                     "content_index", 0, key, value);
}

static json_t *at_text(const struct reply_stream *stream, const struct reply *reply, const char *key, json_t *value)
{
    json_t *event = at_part(stream, reply, key, value);
    json_object_set_new(event, "logprobs", json_array());
    return event;
}

static void begin_text(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    put_added(stream, message_item(reply, json_array(), "in_progress"), out);
    put(stream, "response.content_part.added", at_part(stream, reply, "part", text_part("")), out);
    stream->is_open = true;
}

static void end_text(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    put(stream, "response.output_text.done", at_text(stream, reply, "text", event_str(reply->text)), out);
    put(stream, "response.content_part.done", at_part(stream, reply, "part", text_part(reply->text)), out);
    put_done(stream, message_item(reply, json_pack("[o]", text_part(reply->text)), text_status(reply)), out);
    stream->is_open = false;
}

static void put_summary(struct reply_stream *stream, const struct reply *reply, const char *type, const char *key,
                        json_t *value, struct buffer *out)
{
    put(stream, type,
        json_pack("{s:o, s:I, s:i, s:o}", "item_id", reasoning_id(reply), "output_index", item_index(stream),
                  "summary_index", 0, key, value),
        out);
}

static void begin_thinking(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    put_added(stream, reasoning_item(reply, json_array(), "in_progress"), out);
    put_summary(stream, reply, "response.reasoning_summary_part.added", "part", summary_part(""), out);
    stream->is_thinking = true;
}

void responses_stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                               struct buffer *out)
{
    if (!stream->is_thinking)
        begin_thinking(stream, reply, out);
    if (piece.len > 0)
        put_summary(stream, reply, "response.reasoning_summary_text.delta", "delta", event_text(piece), out);
    stream->thought += piece.len;
}

/* An empty one is told, too. */
static void end_thinking(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    const struct slice rest = event_rest_of_thinking(stream, reply);
    if (rest.len > 0 || (stream->blocks == 0 && reply->thinking))
        responses_stream_thinking(stream, reply, rest, out);
    if (!stream->is_thinking)
        return;
    put_summary(stream, reply, "response.reasoning_summary_text.done", "text", event_str(reply->thinking), out);
    put_summary(stream, reply, "response.reasoning_summary_part.done", "part", summary_part(reply->thinking), out);
    put_done(stream, whole_reasoning(reply), out);
    stream->is_thinking = false;
}

void responses_stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                           struct buffer *out)
{
    end_thinking(stream, reply, out);
    if (!stream->is_open)
        begin_text(stream, reply, out);
    if (piece.len > 0)
        put(stream, "response.output_text.delta", at_text(stream, reply, "delta", event_text(piece)), out);
    stream->said += piece.len;
}

static void put_call(struct reply_stream *stream, const struct reply_call *call, struct buffer *out)
{
    static const char *const types[][2] = {{"response.function_call_arguments.delta", "delta"},
                                           {"response.function_call_arguments.done", "arguments"}};
    put_added(stream, call_item(call, json_string(""), "in_progress"), out);
    for (size_t i = 0; i < 2; i++)
        put(stream, types[i][0],
            json_pack("{s:o, s:I, s:o}", "item_id", event_id("fc_", call->id), "output_index", item_index(stream),
                      types[i][1], event_arguments(call->arguments)),
            out);
    put_done(stream, call_item(call, event_arguments(call->arguments), "completed"), out);
}

/* Always "completed", with the status of what was cut: at "response.incomplete" Codex asks for the whole turn again. */
void responses_stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out)
{
    const bool has_text = stream->is_open || has_message(reply);
    (void)wants_usage;
    end_thinking(stream, reply, out);
    if (has_text) {
        responses_stream_text(stream, reply, event_rest(stream, reply), out);
        end_text(stream, reply, out);
    }
    for (size_t i = 0; i < reply->call_count; i++)
        put_call(stream, &reply->calls[i], out);
    put(stream, "response.completed", json_pack("{s:o}", "response", whole_response(reply, has_text, out)), out);
}

void responses_stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out)
{
    const struct reply nobody = {.id = "failed", .model = ""};
    json_t *said = json_pack("{s:s, s:o}", "code", openai_error_code(error), "message", event_str(words));
    put(stream, "response.failed",
        json_pack("{s:o}", "response", response(&nobody, "failed", json_array(), said, NULL)), out);
}
