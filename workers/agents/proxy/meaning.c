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

/* The same but for blanks at the ends of lines, which Claude Code takes out of what is to be written to a file. */
static bool lines_equal(const char *one, const char *other)
{
    for (;; one++, other++) {
        const char *end = one + strspn(one, " \t\r"), *other_end = other + strspn(other, " \t\r");
        if ((*end == '\n' || !*end) && (*other_end == '\n' || !*other_end)) {
            one = end;
            other = other_end;
        }
        if (*one != *other || !*one)
            return *one == *other;
    }
}

/* Behind "cd DIRECTORY && ", which Claude Code takes off a command where it is there already. */
static const char *skip_cd(const char *command)
{
    static const char start[] = "cd ", end[] = " && ";
    const char *at = strncmp(command, start, strlen(start)) == 0 ? strstr(command, end) : NULL;
    return at ? at + strlen(end) : command;
}

static bool argument_equals(const json_t *one, const json_t *other)
{
    if (!json_is_string(one) || !json_is_string(other))
        return values_equal(one, other);
    const char *text = json_string_value(one), *same = json_string_value(other);
    return lines_equal(text, same) || lines_equal(skip_cd(text), same) || lines_equal(text, skip_cd(same));
}

/* Whether all that `other` does not have of these arguments is what goes without saying. */
static bool rest_is_default(const json_t *arguments, const json_t *other, const json_t *properties)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        const json_t *as_said = json_object_get(other, key);
        const json_t *same = as_said ? as_said : json_object_get(json_object_get(properties, key), "default");
        if (!same || !argument_equals(value, same))
            return false;
    }
    return true;
}

static bool arguments_equal(const json_t *one, const json_t *other, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    return rest_is_default(one, other, properties) && rest_is_default(other, one, properties);
}

static const json_t *find_schema(const char *name, const struct said_tool *tools, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_word(tools[i].name, name))
            return tools[i].parameters;
    return NULL;
}

static bool calls_equal(const struct said_call *one, const struct said_call *other, const struct said_tool *tools,
                        size_t count)
{
    if (!same_word(one->id, other->id) || !same_word(one->name, other->name))
        return false;
    return one->arguments && other->arguments
               ? arguments_equal(one->arguments, other->arguments, find_schema(one->name, tools, count))
               : !one->arguments && !other->arguments && same_word(one->text, other->text);
}

/* A dialect that does not give thinking back, or a harness that leaves it out, changes nothing of what was said. */
static bool thoughts_equal(const char *one, const char *other)
{
    return trimmed(one) == 0 || trimmed(other) == 0 || texts_equal(one, other);
}

/* One that is missing is none that is another's. */
static bool handles_agree(const char *one, const char *other) { return !one || !other || strcmp(one, other) == 0; }

bool meaning_equals(const struct said *one, const struct said *other, const struct said_tool *tools, size_t count)
{
    bool same = one->role == other->role && texts_equal(one->text, other->text) &&
                thoughts_equal(one->thinking, other->thinking) && handles_agree(one->handle, other->handle) &&
                same_word(one->call_id, other->call_id) && one->is_error == other->is_error &&
                one->call_count == other->call_count;
    for (size_t i = 0; i < one->call_count && same; i++)
        same = calls_equal(&one->calls[i], &other->calls[i], tools, count);
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
