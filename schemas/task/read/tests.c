/* The tests of a program, eval.tests: inputs and outputs, or asserts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/task/read/task_read.h"

static bool are_strings(const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)(uintptr_t)list, i, one) if (!json_is_string(one)) return false;
    return true;
}

static bool wrong_type(const struct task_place *place, const char *name, const char *wanted)
{
    struct task_place member = *place;
    snprintf(member.shown, sizeof(member.shown), "%.100s.%s", place->shown, name);
    return place_wrong_type(&member, wanted);
}

static bool check_member(const struct task_place *place, const char *name, const json_t *value)
{
    static const char *const lists[] = {"inputs", "outputs", "asserts"}, *const texts[] = {"fn_name", "entry_point"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (strcmp(name, lists[i]) == 0 && i < 2)
            return json_is_array(value) || wrong_type(place, name, "a list");
        else if (strcmp(name, lists[i]) == 0)
            return (json_is_array(value) && are_strings(value)) || wrong_type(place, name, "a list of strings");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (strcmp(name, texts[i]) == 0)
            return json_is_string(value) || wrong_type(place, name, "a string");
    return refuse(place->no, REFUSAL_UNKNOWN_FIELD, place->shown,
                  "%s may have only inputs, outputs, fn_name, asserts and entry_point", place->shown);
}

/* Which of the forms it is, and that it is whole. */
static bool check_form(const struct task_place *place, const json_t *value)
{
    const json_t *inputs = json_object_get(value, "inputs"), *outputs = json_object_get(value, "outputs");
    const json_t *asserts = json_object_get(value, "asserts"), *call = json_object_get(value, "fn_name");
    const size_t count = json_array_size(asserts ? asserts : inputs);
    if (asserts && (inputs || outputs || call))
        return refuse(place->no, REFUSAL_AMBIGUOUS, place->shown,
                      "%s must have either asserts or inputs and outputs, not both", place->shown);
    if (!asserts && (!inputs || !outputs))
        return refuse(place->no, REFUSAL_MISSING_FIELD, place->shown, "%s must have inputs and outputs, or asserts",
                      place->shown);
    if (!asserts && json_array_size(inputs) != json_array_size(outputs))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s has %zu inputs and %zu outputs", place->shown,
                      json_array_size(inputs), json_array_size(outputs));
    return place_check_bounds(place, (double)count, " elements") &&
           (asserts || call || (are_strings(inputs) && are_strings(outputs)) ||
            place_wrong_type(place, "of texts where there is no fn_name"));
}

bool task_read_tests(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    const char *name;
    json_t *member;
    if (!json_is_object(value))
        return place_wrong_type(place, "an object");
    json_object_foreach((json_t *)(uintptr_t)value, name, member) if (!check_member(place, name, member)) return false;
    return check_form(place, value) && place_set_json(place, &task->eval_tests, value);
}
