#include "workers/agents/proxy/dialects/anthropic_reply.h"

#include "workers/agents/proxy/dialects/events.h"

/* ---- an answer --------------------------------------------------------------------------------- */

static const char *stop_word(enum reply_finish finish)
{
    return finish == REPLY_LENGTH ? "max_tokens" : finish == REPLY_CALLS ? "tool_use" : "end_turn";
}

static json_t *thinking_block(const char *thinking, const char *signature)
{
    return json_pack("{s:s, s:o, s:o}", "type", "thinking", "thinking", event_str(thinking), "signature",
                     event_str(signature));
}

static json_t *call_block(const struct reply_call *call, json_t *input)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "tool_use", "id", event_str(call->id), "name",
                     event_str(call->name), "input", input);
}

static json_t *text_block(const char *text) { return json_pack("{s:s, s:o}", "type", "text", "text", event_str(text)); }

static json_t *all_blocks(const struct reply *reply, struct buffer *out)
{
    json_t *blocks = json_array();
    if (reply->thinking)
        event_append(blocks, thinking_block(reply->thinking, reply->handle), out);
    if (event_has_text(reply))
        event_append(blocks, text_block(reply->text), out);
    for (size_t i = 0; i < reply->call_count; i++)
        event_append(blocks, call_block(&reply->calls[i], event_object(reply->calls[i].arguments)), out);
    return blocks;
}

/* Its input_tokens are those that were not read from a cache. */
static json_t *usage(const struct reply *reply, uint64_t output_tokens)
{
    const uint64_t cached = reply->cached_tokens < reply->prompt_tokens ? reply->cached_tokens : reply->prompt_tokens;
    return json_pack("{s:o, s:i, s:o, s:o}", "input_tokens", event_number(reply->prompt_tokens - cached),
                     "cache_creation_input_tokens", 0, "cache_read_input_tokens", event_number(cached), "output_tokens",
                     event_number(output_tokens));
}

/* `stop`: NULL while it is not known. */
static json_t *message_json(const struct reply *reply, json_t *content, const char *stop, uint64_t output_tokens)
{
    return json_pack("{s:o, s:s, s:s, s:o, s:o, s:s?, s:n, s:o}", "id", event_id("msg_", reply->id), "type", "message",
                     "role", "assistant", "model", event_str(reply->model), "content", content, "stop_reason", stop,
                     "stop_sequence", "usage", usage(reply, output_tokens));
}

void anthropic_write(const struct reply *reply, struct buffer *out)
{
    event_json(out, message_json(reply, all_blocks(reply, out), stop_word(reply->finish), reply->sampled_tokens));
}

/* ---- as events --------------------------------------------------------------------------------- */

/* An event's type, and its only other key. */
static void put(const char *type, const char *key, json_t *value, struct buffer *out)
{
    event_put(out, type, json_pack("{s:s, s:o}", "type", type, key, value));
}

void anthropic_stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    (void)stream;
    put("message_start", "message", message_json(reply, json_array(), NULL, 0), out);
}

static json_int_t index_of(const struct reply_stream *stream) { return (json_int_t)stream->blocks - 1; }

static void begin_block(struct reply_stream *stream, json_t *block, struct buffer *out)
{
    stream->blocks++;
    event_put(
        out, "content_block_start",
        json_pack("{s:s, s:I, s:o}", "type", "content_block_start", "index", index_of(stream), "content_block", block));
}

static void put_delta(const struct reply_stream *stream, const char *type, const char *key, json_t *value,
                      struct buffer *out)
{
    event_put(out, "content_block_delta",
              json_pack("{s:s, s:I, s:{s:s, s:o}}", "type", "content_block_delta", "index", index_of(stream), "delta",
                        "type", type, key, value));
}

static void end_block(const struct reply_stream *stream, struct buffer *out)
{
    put("content_block_stop", "index", json_integer(index_of(stream)), out);
}

void anthropic_stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                               struct buffer *out)
{
    (void)reply;
    if (!stream->is_thinking)
        begin_block(stream, thinking_block("", ""), out);
    stream->is_thinking = true;
    put_delta(stream, "thinking_delta", "thinking", event_text(piece), out);
    stream->thought += piece.len;
}

/* An empty one is told, too. */
static void end_thinking(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    const struct slice rest = event_rest_of_thinking(stream, reply);
    if (rest.len > 0 || (stream->blocks == 0 && reply->thinking))
        anthropic_stream_thinking(stream, reply, rest, out);
    if (!stream->is_thinking)
        return;
    put_delta(stream, "signature_delta", "signature", event_str(reply->handle), out);
    end_block(stream, out);
    stream->is_thinking = false;
}

void anthropic_stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                           struct buffer *out)
{
    end_thinking(stream, reply, out);
    if (piece.len == 0)
        return;
    if (!stream->is_open)
        begin_block(stream, text_block(""), out);
    stream->is_open = true;
    put_delta(stream, "text_delta", "text", event_text(piece), out);
    stream->said += piece.len;
}

static void put_call(struct reply_stream *stream, const struct reply_call *call, struct buffer *out)
{
    begin_block(stream, call_block(call, json_object()), out);
    put_delta(stream, "input_json_delta", "partial_json", event_arguments(call->arguments), out);
    end_block(stream, out);
}

void anthropic_stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out)
{
    (void)wants_usage;
    anthropic_stream_text(stream, reply, event_rest(stream, reply), out);
    if (stream->is_open)
        end_block(stream, out);
    for (size_t i = 0; i < reply->call_count; i++)
        put_call(stream, &reply->calls[i], out);
    event_put(out, "message_delta",
              json_pack("{s:s, s:{s:s, s:n}, s:o}", "type", "message_delta", "delta", "stop_reason",
                        stop_word(reply->finish), "stop_sequence", "usage", usage(reply, reply->sampled_tokens)));
    event_put(out, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

/* ---- errors ------------------------------------------------------------------------------------ */

static const char *type_of(enum reply_error error)
{
    switch (error) {
    case REPLY_ENDED: return "permission_error";
    case REPLY_UNKNOWN: return "not_found_error";
    case REPLY_TOO_LARGE: return "request_too_large";
    case REPLY_UNAVAILABLE: return "overloaded_error";
    case REPLY_BROKEN: return "api_error";
    default: return "invalid_request_error";
    }
}

/* By these first words Claude Code knows that it must compact or stop. */
static json_t *error_json(enum reply_error error, const char *words)
{
    return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", type_of(error), "message",
                     event_id(error == REPLY_TOO_LONG ? "prompt is too long: " : "", words));
}

void anthropic_write_error(enum reply_error error, const char *words, struct buffer *out)
{
    event_json(out, error_json(error, words));
}

void anthropic_stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out)
{
    (void)stream;
    event_put(out, "error", error_json(error, words));
}

void anthropic_write_count(uint64_t tokens, struct buffer *out)
{
    event_json(out, json_pack("{s:o}", "input_tokens", event_number(tokens)));
}
