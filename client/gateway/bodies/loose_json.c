#include "client/gateway/bodies/loose_json.h"

#include "client/gateway/json_asked.h"
#include "common/base/cleanup.h"

enum { FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL };

static const char *const constants[] = {"-Infinity", "Infinity", "NaN"};

/* The length of such a constant at the beginning; 0: none. */
static size_t constant_at(struct slice text, size_t at)
{
    for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++) {
        const size_t len = strlen(constants[i]);
        if (text.len - at >= len && memcmp(text.data + at, constants[i], len) == 0)
            return len;
    }
    return 0;
}

static void write_nulls(struct slice text, struct buffer *out)
{
    size_t from = 0;
    for (size_t at = 0; at < text.len; at++) {
        if (text.data[at] == '"') {
            at = json_asked_string_end(text, at);
            continue;
        }
        const size_t len = constant_at(text, at);
        if (len == 0)
            continue;
        buffer_append(out, text.data + from, at - from);
        buffer_append_str(out, "null");
        from = at + len;
        at = from - 1;
    }
    buffer_append(out, text.data + from, text.len - from);
}

json_t *loose_json_read(struct slice text, json_error_t *error)
{
    AUTO_BUFFER strict = {0};
    if (text.len > 0 && (memchr(text.data, 'N', text.len) || memchr(text.data, 'I', text.len))) {
        write_nulls(text, &strict);
        text = buffer_peek(&strict);
    }
    return strict.failed ? NULL : json_asked_read(text, FLAGS, error);
}

json_t *loose_json_decoded(json_t *value)
{
    json_error_t error;
    if (!json_is_string(value))
        return json_incref(value);
    return loose_json_read(slice_of(json_string_value(value), json_string_length(value)), &error);
}
