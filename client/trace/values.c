#include "client/trace/values.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

json_t *value_text(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    AUTO_FREE char *repaired = strdup(text);
    if (!repaired)
        return NULL;
    text_repair(repaired);
    return json_string(repaired);
}

void value_set(json_t *object, const char *key, json_t *value)
{
    if (value)
        json_object_set_new(object, key, value);
}

void value_set_text(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        value_set(object, key, value_text(text));
}

bool value_append(struct buffer *out, json_t *value)
{
    AUTO_FREE char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(value);
    return text && buffer_append_str(out, text);
}

void value_hex(const uint8_t *bytes, size_t count, char *ret)
{
    for (size_t i = 0; i < count; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}
