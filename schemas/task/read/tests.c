/* The tests of a program, eval.tests: inputs and outputs, or asserts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/task/read/task_read.h"

static bool are_strings(struct task_value list)
{
    for (struct task_values each = task_values_of(list); task_values_next(&each);)
        if (!task_value_is(each.value, JSON_DOC_STRING))
            return false;
    return true;
}

static bool wrong_type(const struct task_place *place, const char *name, const char *wanted)
{
    struct task_place member = *place;
    snprintf(member.shown, sizeof(member.shown), "%.100s.%s", place->shown, name);
    return place_wrong_type(&member, wanted);
}

static bool check_member(const struct task_place *place, const char *name, struct task_value value)
{
    static const char *const lists[] = {"inputs", "outputs", "asserts"}, *const texts[] = {"fn_name", "entry_point"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (strcmp(name, lists[i]) == 0 && i < 2)
            return task_value_is(value, JSON_DOC_ARRAY) || wrong_type(place, name, "a list");
        else if (strcmp(name, lists[i]) == 0)
            return (task_value_is(value, JSON_DOC_ARRAY) && are_strings(value)) ||
                   wrong_type(place, name, "a list of strings");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (strcmp(name, texts[i]) == 0)
            return task_value_is(value, JSON_DOC_STRING) || wrong_type(place, name, "a string");
    return refuse(place->no, REFUSAL_UNKNOWN_FIELD, place->shown,
                  "%s may have only inputs, outputs, fn_name, asserts and entry_point", place->shown);
}

/* Which of the forms it is, and that it is whole. */
static bool check_form(const struct task_place *place, struct task_value value)
{
    const struct task_value inputs = task_value_get(value, "inputs"), outputs = task_value_get(value, "outputs");
    const struct task_value asserts = task_value_get(value, "asserts"), call = task_value_get(value, "fn_name");
    const size_t count = task_value_count(asserts.at ? asserts : inputs);
    if (asserts.at && (inputs.at || outputs.at || call.at))
        return refuse(place->no, REFUSAL_AMBIGUOUS, place->shown,
                      "%s must have either asserts or inputs and outputs, not both", place->shown);
    if (!asserts.at && (!inputs.at || !outputs.at))
        return refuse(place->no, REFUSAL_MISSING_FIELD, place->shown, "%s must have inputs and outputs, or asserts",
                      place->shown);
    if (!asserts.at && task_value_count(inputs) != task_value_count(outputs))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s has %zu inputs and %zu outputs", place->shown,
                      task_value_count(inputs), task_value_count(outputs));
    return place_check_bounds(place, (double)count, " elements") &&
           (asserts.at || call.at || (are_strings(inputs) && are_strings(outputs)) ||
            place_wrong_type(place, "of texts where there is no fn_name"));
}

bool task_read_tests(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    if (!task_value_is(value, JSON_DOC_OBJECT))
        return place_wrong_type(place, "an object");
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const char *name = place_text(place, each.name);
        if (!name || !check_member(place, name, each.value))
            return false;
    }
    if (!check_form(place, value))
        return false;
    json_t *tests = task_value_load(value);
    const bool good = place_set_json(place, &task->eval_tests, tests);
    json_decref(tests);
    return good;
}
