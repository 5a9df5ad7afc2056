#include "client/gateway/json_asked.h"

#include <stdio.h>
#include <string.h>

size_t json_asked_string_end(struct slice text, size_t at)
{
    for (at++; at < text.len && text.data[at] != '"'; at++)
        at += text.data[at] == '\\';
    return at < text.len ? at : text.len - 1;
}

/* Each but the first of a list or object stands behind a comma, and that one behind a bracket. */
static bool has_more_values(struct slice text, size_t most)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len && count <= most; at++) {
        const uint8_t c = text.data[at];
        if (c == '"')
            at = json_asked_string_end(text, at);
        else
            count += c == ',' || c == '[' || c == '{';
    }
    return count > most;
}

json_t *json_asked_read(struct slice text, size_t flags, json_error_t *error)
{
    if (text.len <= JSON_ASKED_VALUES_MAX || !has_more_values(text, JSON_ASKED_VALUES_MAX))
        return json_loadb((const char *)text.data, text.len, flags, error);
    if (error) {
        *error = (json_error_t){.line = 1};
        snprintf(error->text, sizeof(error->text), "it holds more than %d values", JSON_ASKED_VALUES_MAX);
    }
    return NULL;
}
