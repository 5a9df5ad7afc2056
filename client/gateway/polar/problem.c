#include "client/gateway/polar/problem.h"

#include <stdarg.h>
#include <stdio.h>

bool problem_set(struct problem *problem, const char *field, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    snprintf(problem->field, sizeof(problem->field), "%s", field);
    vsnprintf(problem->words, sizeof(problem->words), format, args);
    va_end(args);
    return false;
}

static bool set_in(struct problem *problem, const char *place, const char *name, const char *words)
{
    char field[sizeof(problem->field)];
    snprintf(field, sizeof(field), "%s%s%s", place, *place ? "." : "", name);
    return problem_set(problem, field, "%s", words);
}

static const char *type_words(json_type type)
{
    switch (type) {
    case JSON_OBJECT: return "must be an object";
    case JSON_ARRAY: return "must be a list";
    case JSON_STRING: return "must be a string";
    case JSON_INTEGER: return "must be a whole number";
    case JSON_REAL: return "must be a number";
    default: return "must be true or false";
    }
}

bool problem_read(struct problem *problem, const json_t *object, const char *place, const char *name, json_type type,
                  json_t **ret)
{
    json_t *value = json_object_get(object, name);
    *ret = NULL;
    if (!value || json_is_null(value))
        return true;
    const bool fits = type == JSON_REAL   ? json_is_number(value)
                      : type == JSON_TRUE ? json_is_boolean(value)
                                          : json_typeof(value) == type;
    if (!fits)
        return set_in(problem, place, name, type_words(type));
    *ret = value;
    return true;
}

static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

bool problem_none(struct problem *problem, const json_t *object, const char *place, const char *name, const char *why)
{
    return is_nothing(json_object_get(object, name)) || set_in(problem, place, name, why);
}
