/* The arguments of calls: checked against a tool's rows, described from them, read by the tools. */
#include "workers/tools/arguments.h"

#include <stdio.h>

#include "common/base/cleanup.h"
#include "workers/tools/tool.h"

/* ---- reading ------------------------------------------------------------------------------ */

const char *tool_string(const json_t *arguments, const char *name)
{
    return json_string_value(json_object_get(arguments, name));
}

int64_t tool_integer(const json_t *arguments, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(arguments, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool tool_boolean(const json_t *arguments, const char *name) { return json_is_true(json_object_get(arguments, name)); }

/* ---- checking ----------------------------------------------------------------------------- */

struct check {
    const struct tool *tool;
    const struct tool_argument *argument;
    char *text; /* what is wrong with it, for the model */
    size_t size;
};

static const char *const type_words[] = {"a string", "an integer", "true or false", "a list of integers"};

#define WRONG(check, ...) (snprintf((check)->text, (check)->size, __VA_ARGS__), false)

static const char *json_words(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    default: return "null";
    }
}

static bool is_integers(const json_t *value)
{
    if (!json_is_array(value))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_integer(json_array_get(value, i)))
            return false;
    return true;
}

static bool has_type(const json_t *value, enum tool_type type)
{
    switch (type) {
    case TOOL_STRING: return json_is_string(value);
    case TOOL_INTEGER: return json_is_integer(value);
    case TOOL_BOOLEAN: return json_is_boolean(value);
    case TOOL_INTEGERS: return is_integers(value);
    }
    return false;
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static bool check_bounds(const struct check *check, double value, const char *unit)
{
    const struct tool_argument *argument = check->argument;
    if (argument->min == 0 && argument->max == 0)
        return true;
    if (value < argument->min)
        return WRONG(check, "%s: the argument %s is %.15g%s; the minimum is %.15g.", check->tool->name, argument->name,
                     value, unit, argument->min);
    if (value > argument->max)
        return WRONG(check, "%s: the argument %s is %.15g%s; the maximum is %.15g.", check->tool->name, argument->name,
                     value, unit, argument->max);
    return true;
}

static bool is_among(const char *text, const char *words)
{
    for (const char *at = words; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (slice_is(slice_of(at, strcspn(at, "|")), text))
            return true;
    }
    return false;
}

static bool check_value(const struct check *check, const json_t *value)
{
    const struct tool_argument *argument = check->argument;
    if (!has_type(value, argument->type))
        return WRONG(check, "%s: the argument %s must be %s, not %s.", check->tool->name, argument->name,
                     type_words[argument->type], json_words(value));
    if (argument->words && !is_among(json_string_value(value), argument->words))
        return WRONG(check, "%s: the argument %s must be one of %s.", check->tool->name, argument->name,
                     argument->words);
    switch (argument->type) {
    case TOOL_STRING: return check_bounds(check, (double)characters(json_string_value(value)), " characters");
    case TOOL_INTEGER: return check_bounds(check, (double)json_integer_value(value), "");
    case TOOL_INTEGERS: return check_bounds(check, (double)json_array_size(value), " elements");
    default: return true;
    }
}

static bool refuse_unknown(const struct check *check, const char *name)
{
    AUTO_BUFFER names = {0};
    for (const struct tool_argument *at = check->tool->arguments; at->name; at++)
        buffer_printf(&names, "%s%s", at == check->tool->arguments ? "" : ", ", at->name);
    AUTO_FREE char *text = buffer_take_str(&names);
    return WRONG(check, "%s has no argument \"%.64s\". Its arguments are: %s.", check->tool->name, name,
                 text ? text : "");
}

static bool check_names(const struct check *check, const json_t *arguments)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        const struct tool_argument *at = check->tool->arguments;
        while (at->name && strcmp(at->name, name) != 0)
            at++;
        if (!at->name)
            return refuse_unknown(check, name);
    }
    return true;
}

static bool is_string(const json_t *value) { return json_is_string(value); }
static bool is_integer(const json_t *value) { return json_is_integer(value); }
static bool is_number(const json_t *value) { return json_is_number(value); }
static bool is_boolean(const json_t *value) { return json_is_boolean(value); }
static bool is_object(const json_t *value) { return json_is_object(value); }
static bool is_array(const json_t *value) { return json_is_array(value); }

static const struct {
    const char *word, *words;
    bool (*fits)(const json_t *value);
} schema_types[] = {
    {"string", "a string", is_string},        {"integer", "an integer", is_integer}, {"number", "a number", is_number},
    {"boolean", "true or false", is_boolean}, {"object", "an object", is_object},    {"array", "a list", is_array},
};

/* The types and the presence of what the schema has at its top; whoever is called sees to the rest. */
static bool check_property(const struct check *check, const json_t *schema, const char *name, const json_t *value)
{
    const json_t *property = json_object_get(json_object_get(schema, "properties"), name);
    const char *type = json_string_value(json_object_get(property, "type"));
    if (!property && json_is_false(json_object_get(schema, "additionalProperties")))
        return WRONG(check, "%s has no argument \"%.64s\".", check->tool->name, name);
    for (size_t i = 0; type && i < sizeof(schema_types) / sizeof(schema_types[0]); i++)
        if (strcmp(type, schema_types[i].word) == 0 && !json_is_null(value) && !schema_types[i].fits(value))
            return WRONG(check, "%s: the argument %.64s must be %s, not %s.", check->tool->name, name,
                         schema_types[i].words, json_words(value));
    return true;
}

static bool check_schema(const struct check *check, const json_t *arguments)
{
    const json_t *schema = check->tool->parameters, *required = json_object_get(schema, "required");
    const char *name;
    json_t *value;
    for (size_t i = 0; i < json_array_size(required); i++) {
        name = json_string_value(json_array_get(required, i));
        if (name && !json_object_get(arguments, name))
            return WRONG(check, "%s: the argument %.64s is missing.", check->tool->name, name);
    }
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        if (!check_property(check, schema, name, value))
            return false;
    }
    return true;
}

bool tool_check(const struct tool *tool, const json_t *arguments, char *text, size_t size)
{
    struct check check = {.tool = tool, .text = text, .size = size};
    if (!json_is_object(arguments))
        return WRONG(&check, "%s: the arguments must be a JSON object.", tool->name);
    if (tool->parameters)
        return check_schema(&check, arguments);
    for (check.argument = tool->arguments; check.argument->name; check.argument++) {
        const json_t *value = json_object_get(arguments, check.argument->name);
        bool is_absent = !value || json_is_null(value);
        if (is_absent && check.argument->required)
            return WRONG(&check, "%s: the argument %s is missing.", tool->name, check.argument->name);
        if (!is_absent && !check_value(&check, value))
            return false;
    }
    return check_names(&check, arguments);
}

/* ---- describing --------------------------------------------------------------------------- */

static json_t *word_list(const char *words)
{
    json_t *list = json_array();
    for (const char *at = words; list && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (json_array_append_new(list, json_stringn(at, strcspn(at, "|"))) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static bool put_bound(json_t *json, const char *key, double value)
{
    return value == 0 || json_object_set_new(json, key, json_integer((json_int_t)value)) == 0;
}

/* As JSON Schema has them. */
static const struct {
    const char *type, *min, *max;
} forms[] = {
    [TOOL_STRING] = {"string", "minLength", "maxLength"},
    [TOOL_INTEGER] = {"integer", "minimum", "maximum"},
    [TOOL_BOOLEAN] = {"boolean", "", ""},
    [TOOL_INTEGERS] = {"array", "minItems", "maxItems"},
};

const char *tool_type_word(enum tool_type type) { return forms[type].type; }

static bool describe_argument(const struct tool_argument *argument, json_t *json)
{
    const enum tool_type type = argument->type;
    return json_object_set_new(json, "type", json_string(forms[type].type)) == 0 &&
           json_object_set_new(json, "description", json_string(argument->doc)) == 0 &&
           (type != TOOL_INTEGERS || json_object_set_new(json, "items", json_pack("{s:s}", "type", "integer")) == 0) &&
           (!argument->words || json_object_set_new(json, "enum", word_list(argument->words)) == 0) &&
           put_bound(json, forms[type].min, argument->min) && put_bound(json, forms[type].max, argument->max);
}

/* Into {"properties": {}, "required": []}. */
static bool describe_arguments(const struct tool *tool, json_t *parameters)
{
    json_t *properties = json_object_get(parameters, "properties");
    json_t *required = json_object_get(parameters, "required");
    for (const struct tool_argument *at = tool->arguments; at->name; at++) {
        json_t *json = json_object();
        if (json_object_set_new(properties, at->name, json) < 0 || !describe_argument(at, json) ||
            (at->required && json_array_append_new(required, json_string(at->name)) < 0))
            return false;
    }
    return true;
}

json_t *tool_describe(const struct tool *tool)
{
    json_t *parameters = tool->parameters ? json_deep_copy(tool->parameters)
                                          : json_pack("{s:s, s:{}, s:[]}", "type", "object", "properties", "required");
    if (!parameters || (!tool->parameters && !describe_arguments(tool, parameters))) {
        json_decref(parameters);
        return NULL;
    }
    return json_pack("{s:s, s:{s:s, s:s, s:o}}", "type", "function", "function", "name", tool->name, "description",
                     tool->doc, "parameters", parameters);
}
