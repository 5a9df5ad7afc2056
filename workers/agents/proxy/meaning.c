#include "workers/agents/proxy/meaning.h"

#include <string.h>

static bool values_equal(const json_t *one, const json_t *other);

static bool arrays_equal(const json_t *one, const json_t *other)
{
    const size_t count = json_array_size(one);
    bool same = count == json_array_size(other);
    for (size_t i = 0; i < count && same; i++)
        same = values_equal(json_array_get(one, i), json_array_get(other, i));
    return same;
}

static bool objects_equal(const json_t *one, const json_t *other)
{
    const char *key;
    json_t *value;
    if (json_object_size(one) != json_object_size(other))
        return false;
    json_object_foreach((json_t *)(uintptr_t)one, key, value)
    {
        const json_t *same = json_object_get(other, key);
        if (!same || !values_equal(value, same))
            return false;
    }
    return true;
}

/* Numbers by value, keys in any order. */
static bool values_equal(const json_t *one, const json_t *other)
{
    if (json_is_number(one) && json_is_number(other))
        return json_is_integer(one) && json_is_integer(other) ? json_integer_value(one) == json_integer_value(other)
                                                              : json_number_value(one) == json_number_value(other);
    if (json_is_object(one) && json_is_object(other))
        return objects_equal(one, other);
    if (json_is_array(one) && json_is_array(other))
        return arrays_equal(one, other);
    return json_equal(one, other);
}

/* Without blanks at its end; NULL is "". */
static size_t trimmed(const char *text)
{
    size_t len = text ? strlen(text) : 0;
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    return len;
}

static bool texts_equal(const char *one, const char *other)
{
    const size_t len = trimmed(one);
    return len == trimmed(other) && (len == 0 || memcmp(one, other, len) == 0);
}

static bool same_word(const char *one, const char *other) { return strcmp(one ? one : "", other ? other : "") == 0; }

static bool calls_equal(const struct said_call *one, const struct said_call *other)
{
    if (!same_word(one->id, other->id) || !same_word(one->name, other->name))
        return false;
    return one->arguments && other->arguments
               ? values_equal(one->arguments, other->arguments)
               : !one->arguments && !other->arguments && same_word(one->text, other->text);
}

/* A dialect that does not give thinking back, or a harness that leaves it out, changes nothing of what was said. */
static bool thoughts_equal(const char *one, const char *other)
{
    return trimmed(one) == 0 || trimmed(other) == 0 || texts_equal(one, other);
}

/* One that is missing is none that is another's. */
static bool handles_agree(const char *one, const char *other) { return !one || !other || strcmp(one, other) == 0; }

bool meaning_equals(const struct said *one, const struct said *other)
{
    bool same = one->role == other->role && texts_equal(one->text, other->text) &&
                thoughts_equal(one->thinking, other->thinking) && handles_agree(one->handle, other->handle) &&
                same_word(one->call_id, other->call_id) && one->is_error == other->is_error &&
                one->call_count == other->call_count;
    for (size_t i = 0; i < one->call_count && same; i++)
        same = calls_equal(&one->calls[i], &other->calls[i]);
    return same;
}

bool meaning_knows(const struct said *turn, const struct said *message)
{
    if (turn->handle && message->handle && strcmp(turn->handle, message->handle) == 0)
        return true;
    for (size_t i = 0; i < turn->call_count; i++)
        for (size_t j = 0; j < message->call_count; j++)
            if (same_word(turn->calls[i].id, message->calls[j].id))
                return true;
    return false;
}

bool meaning_tools_equal(const struct said_tool *one, size_t one_count, const struct said_tool *other,
                         size_t other_count)
{
    bool same = one_count == other_count;
    for (size_t i = 0; i < one_count && same; i++)
        same = same_word(one[i].name, other[i].name) && same_word(one[i].doc, other[i].doc) &&
               values_equal(one[i].parameters, other[i].parameters);
    return same;
}
