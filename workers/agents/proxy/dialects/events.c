#include "workers/agents/proxy/dialects/events.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"

enum { DUMP = JSON_COMPACT | JSON_ENCODE_ANY };

json_t *event_text(struct slice text)
{
    json_t *string = json_stringn(text.data ? (const char *)text.data : "", text.len);
    if (string)
        return string;
    AUTO_BUFFER repaired = {0};
    utf8_append_repaired(&repaired, text);
    return repaired.failed ? NULL : json_stringn((const char *)repaired.data, repaired.len);
}

json_t *event_str(const char *text) { return event_text(slice_from_str(text ? text : "")); }

json_t *event_id(const char *prefix, const char *id)
{
    AUTO_BUFFER whole = {0};
    buffer_printf(&whole, "%s%s", prefix, id ? id : "");
    return whole.failed ? NULL : event_text(buffer_peek(&whole));
}

json_t *event_arguments(const json_t *arguments)
{
    AUTO_FREE char *text = arguments ? json_dumps(arguments, DUMP) : strdup("{}");
    return text ? event_str(text) : NULL;
}

json_t *event_object(const json_t *arguments)
{
    return arguments ? json_incref((json_t *)(uintptr_t)arguments) : json_object();
}

json_t *event_number(uint64_t number) { return json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number); }

static int put(const char *bytes, size_t len, void *out) { return buffer_append(out, bytes, len) ? 0 : -1; }

void event_append(json_t *list, json_t *value, struct buffer *out)
{
    if (json_array_append_new(list, value) < 0)
        out->failed = true;
}

void event_json(struct buffer *out, json_t *json)
{
    if (!json || json_dump_callback(json, put, out, DUMP) < 0)
        out->failed = true;
    json_decref(json);
}

void event_put(struct buffer *out, const char *name, json_t *json)
{
    if (name)
        buffer_printf(out, "event: %s\n", name);
    buffer_append_str(out, "data: ");
    event_json(out, json);
    buffer_append_str(out, "\n\n");
}

static struct slice rest_of(const char *text, size_t told)
{
    const struct slice all = slice_from_str(text);
    return told < all.len ? slice_of(all.data + told, all.len - told) : slice_of(NULL, 0);
}

struct slice event_rest(const struct reply_stream *stream, const struct reply *reply)
{
    return rest_of(reply->text, stream->said);
}

struct slice event_rest_of_thinking(const struct reply_stream *stream, const struct reply *reply)
{
    return rest_of(reply->thinking, stream->thought);
}

bool event_has_text(const struct reply *reply) { return reply->text && reply->text[0]; }
