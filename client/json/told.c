#include "client/json/told.h"

const char *told_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

long long told_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}
