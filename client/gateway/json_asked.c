#include "client/gateway/json_asked.h"

#include <stdio.h>
#include <string.h>

/* Where a string ends, of which this is the first quote. */
static const uint8_t *string_end(const uint8_t *at, const uint8_t *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at;
}

/* Each but the first of a list or object stands behind a comma, and that one behind a bracket. */
static bool has_more_values(struct slice text, size_t most)
{
    const uint8_t *end = text.data + text.len;
    size_t count = 0;
    for (const uint8_t *at = text.data; at < end && count <= most; at++) {
        if (*at == '"')
            at = string_end(at, end);
        else
            count += *at == ',' || *at == '[' || *at == '{';
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
