#include "workers/agents/proxy/dialects/openai.h"

#include <string.h>

#include "workers/agents/proxy/dialects/events.h"

bool openai_format_is_text(struct body *body, const struct body_place *format)
{
    const struct body_place type = body_in(format, "type");
    const char *word = "text";
    if (!body_object(body, format) || !body_word(body, format, "type", &word))
        return false;
    return strcmp(word, "text") == 0 ||
           body_refuse(body, &type, "\"%.64s\": a format that is forced on the model is not supported", word);
}

const char *openai_error_code(enum reply_error error)
{
    switch (error) {
    case REPLY_INVALID: return "invalid_request";
    case REPLY_TOO_LONG: return "context_length_exceeded";
    case REPLY_ENDED: return "rollout_ended";
    case REPLY_UNKNOWN: return "not_found";
    case REPLY_TOO_LARGE: return "request_too_large";
    case REPLY_UNAVAILABLE: return "unavailable";
    default: return "server_error";
    }
}

static const char *type_of(enum reply_error error)
{
    switch (error) {
    case REPLY_ENDED: return "permission_error";
    case REPLY_UNAVAILABLE:
    case REPLY_BROKEN: return "server_error";
    default: return "invalid_request_error";
    }
}

json_t *openai_error(enum reply_error error, const char *words)
{
    return json_pack("{s:{s:o, s:s, s:n, s:s}}", "error", "message", event_str(words), "type", type_of(error), "param",
                     "code", openai_error_code(error));
}

void openai_write_error(enum reply_error error, const char *words, struct buffer *out)
{
    event_json(out, openai_error(error, words));
}

void openai_write_count(uint64_t tokens, struct buffer *out)
{
    event_json(out, json_pack("{s:s, s:o}", "object", "response.input_tokens", "input_tokens", event_number(tokens)));
}
