#include "workers/agents/proxy/dialects/google_reply.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "schemas/task/json/base64.h"
#include "workers/agents/proxy/dialects/events.h"

/* ---- signatures -------------------------------------------------------------------------------- */

/* Clients take a signature for bytes in base64, and give it back encoded anew, by either alphabet, padded or not. */
static json_t *signature_of(const char *handle)
{
    const size_t len = strlen(handle);
    AUTO_FREE char *digits = malloc((len + 2) / 3 * 4 + 1);
    if (!digits)
        return NULL;
    EVP_EncodeBlock((uint8_t *)digits, (const uint8_t *)handle, (int)len);
    return event_str(digits);
}

/* By the one alphabet, and padded; what is no base64 stays none. */
static void put_digits(const char *signature, struct buffer *out)
{
    for (const char *at = signature; *at && *at != '='; at++)
        buffer_append(out, *at == '-' ? "+" : *at == '_' ? "/" : at, 1);
    for (size_t len = out->len; len % 4; len++)
        buffer_append_str(out, "=");
}

char *google_handle(const char *signature)
{
    size_t len = 0;
    AUTO_BUFFER digits = {0};
    put_digits(signature, &digits);
    AUTO_FREE char *handle = digits.failed ? NULL : malloc(base64_room(digits.len) + 1);
    if (!handle)
        return NULL;
    const bool is_base64 = base64_decode(buffer_peek(&digits), (uint8_t *)handle, &len);
    if (!is_base64 || len == 0 || !utf8_is_valid(slice_of(handle, len)))
        return strdup(signature);
    handle[len] = '\0';
    return take_ptr(&handle);
}

/* ---- parts ------------------------------------------------------------------------------------- */

/* `handle`: NULL for none. */
static json_t *text_part(struct slice text, const char *handle)
{
    return json_pack("{s:o, s:o*}", "text", event_text(text), "thoughtSignature", handle ? signature_of(handle) : NULL);
}

static json_t *call_part(const struct reply_call *call, const char *handle)
{
    return json_pack("{s:{s:o, s:o, s:o}, s:o*}", "functionCall", "id", event_str(call->id), "name",
                     event_str(call->name), "args", event_object(call->arguments), "thoughtSignature",
                     handle ? signature_of(handle) : NULL);
}

static json_t *thought_part(struct slice thinking)
{
    return json_pack("{s:o, s:b}", "text", event_text(thinking), "thought", 1);
}

/*
 * What was not told of the thinking, and this text. The first part of text and the first call hold the handle: clients
 * join parts of text, and keep the first's.
 */
static json_t *all_parts(const struct reply_stream *stream, const struct reply *reply, struct slice text,
                         struct buffer *out)
{
    json_t *parts = json_array();
    const bool is_first = stream->blocks == 0;
    const struct slice thinking = event_rest_of_thinking(stream, reply);
    if (is_first && reply->thinking && (thinking.len > 0 || stream->thought == 0))
        event_append(parts, thought_part(thinking), out);
    if (text.len > 0 || (is_first && reply->call_count == 0))
        event_append(parts, text_part(text, is_first ? reply->handle : NULL), out);
    return parts;
}

static void add_calls(const struct reply *reply, json_t *parts, struct buffer *out)
{
    for (size_t i = 0; i < reply->call_count; i++)
        event_append(parts, call_part(&reply->calls[i], i == 0 ? reply->handle : NULL), out);
}

/* ---- an answer --------------------------------------------------------------------------------- */

/* `finish` and `used`: NULL while there is more to come. */
static json_t *response(const struct reply *reply, json_t *parts, const char *finish, json_t *used)
{
    return json_pack("{s:[{s:{s:o, s:s}, s:s*, s:i}], s:o*, s:o, s:o}", "candidates", "content", "parts", parts, "role",
                     "model", "finishReason", finish, "index", 0, "usageMetadata", used, "modelVersion",
                     event_str(reply->model), "responseId", event_str(reply->id));
}

static json_t *whole(const struct reply *reply, json_t *parts)
{
    json_t *used = json_pack("{s:o, s:o, s:o, s:o}", "promptTokenCount", event_number(reply->prompt_tokens),
                             "candidatesTokenCount", event_number(reply->sampled_tokens), "totalTokenCount",
                             event_number(reply->prompt_tokens + reply->sampled_tokens), "cachedContentTokenCount",
                             event_number(reply->cached_tokens));
    return response(reply, parts, reply->finish == REPLY_LENGTH ? "MAX_TOKENS" : "STOP", used);
}

void google_write(const struct reply *reply, struct buffer *out)
{
    const struct reply_stream none = {0};
    json_t *parts = all_parts(&none, reply, slice_from_str(reply->text), out);
    add_calls(reply, parts, out);
    event_json(out, whole(reply, parts));
}

/* A stream begins with what is said first. */
void google_stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out)
{
    (void)stream, (void)reply, (void)out;
}

void google_stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                            struct buffer *out)
{
    event_put(out, NULL, response(reply, json_pack("[o]", thought_part(piece)), NULL, NULL));
    stream->thought += piece.len;
}

void google_stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece, struct buffer *out)
{
    if (piece.len == 0)
        return;
    json_t *parts = all_parts(stream, reply, piece, out);
    stream->blocks++;
    event_put(out, NULL, response(reply, parts, NULL, NULL));
    stream->said += piece.len;
}

void google_stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out)
{
    (void)wants_usage;
    json_t *parts = all_parts(stream, reply, event_rest(stream, reply), out);
    add_calls(reply, parts, out);
    if (json_array_size(parts) == 0)
        event_append(parts, text_part(slice_of(NULL, 0), NULL), out);
    event_put(out, NULL, whole(reply, parts));
}

/* ---- errors ------------------------------------------------------------------------------------ */

static const char *status_of(enum reply_error error)
{
    switch (error) {
    case REPLY_ENDED: return "PERMISSION_DENIED";
    case REPLY_UNKNOWN: return "NOT_FOUND";
    case REPLY_UNAVAILABLE: return "UNAVAILABLE";
    case REPLY_BROKEN: return "INTERNAL";
    default: return "INVALID_ARGUMENT";
    }
}

static json_t *error_json(enum reply_error error, const char *words)
{
    return json_pack("{s:{s:i, s:o, s:s}}", "error", "code", reply_error_status(error), "message", event_str(words),
                     "status", status_of(error));
}

void google_write_error(enum reply_error error, const char *words, struct buffer *out)
{
    event_json(out, error_json(error, words));
}

/* No event: as the API itself breaks a stream, which its clients take for an error and not for one more chunk. */
void google_stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out)
{
    (void)stream;
    event_json(out, error_json(error, words));
    buffer_append_str(out, "\n");
}

void google_write_count(uint64_t tokens, struct buffer *out)
{
    event_json(out, json_pack("{s:o}", "totalTokens", event_number(tokens)));
}
