#include "workers/agents/sessions/posted.h"

#include <jansson.h>
#include <string.h>

#include "common/base/text.h"

enum { LEVELS_MAX = 8 };

/* ---- fields ------------------------------------------------------------------------------------------ */

static bool take_reward(const json_t *value, struct verdict *ret, struct refusal *no)
{
    return json_is_number(value) ? verdict_set_reward(ret, json_number_value(value), no)
                                 : refuse(no, REFUSAL_WRONG_TYPE, "reward", "reward must be a number");
}

static bool take_numbers(const json_t *value, const char *field, struct verdict *ret,
                         bool (*add)(struct verdict *verdict, const char *name, double number, struct refusal *no),
                         struct refusal *no)
{
    const char *name;
    json_t *number;
    if (!json_is_object(value))
        return refuse(no, REFUSAL_WRONG_TYPE, field, "%s must be an object of names and numbers", field);
    json_object_foreach((json_t *)(uintptr_t)value, name, number)
    {
        if (!json_is_number(number))
            return refuse(no, REFUSAL_WRONG_TYPE, field, "%s: %.60s is not a number", field, name);
        if (!add(ret, name, json_number_value(number), no))
            return false;
    }
    return true;
}

static bool add_part(struct verdict *verdict, const char *name, double number, struct refusal *no)
{
    return verdict_add_part(verdict, name, number, 1, no);
}

static bool take_parts(const json_t *value, struct verdict *ret, struct refusal *no)
{
    return take_numbers(value, "parts", ret, add_part, no);
}

static bool take_metrics(const json_t *value, struct verdict *ret, struct refusal *no)
{
    return take_numbers(value, "metrics", ret, verdict_add_metric, no);
}

static bool take_detail(const json_t *value, struct verdict *ret, struct refusal *no)
{
    if (!json_is_string(value))
        return refuse(no, REFUSAL_WRONG_TYPE, "detail", "detail must be a text");
    verdict_say(ret, "%s", json_string_value(value));
    return true;
}

static const struct posted_field {
    const char *name;
    bool (*take)(const json_t *value, struct verdict *ret, struct refusal *no);
} fields[] = {{"reward", take_reward}, {"parts", take_parts}, {"metrics", take_metrics}, {"detail", take_detail}};

static const struct posted_field *find(const char *name)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* What is null is as if it were not there. */
static bool take(const json_t *json, const char *eval_kind, struct verdict *ret, struct refusal *no)
{
    const char *name;
    json_t *value;
    const bool is_posted = strcmp(eval_kind, "posted") == 0;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        const struct posted_field *field = find(name);
        if (!field)
            return refuse(no, REFUSAL_UNKNOWN_FIELD, name, "%.60s is no field: reward, parts, metrics and detail are",
                          name);
        if (json_is_null(value))
            continue;
        if (!is_posted)
            return refuse(no, REFUSAL_NOT_ALLOWED, name,
                          "%s: this task's evaluator is %.64s, which alone scores it: end the session without, or say "
                          "\"eval\": {\"kind\": \"posted\"} in the task",
                          name, eval_kind);
        if (!field->take(value, ret, no))
            return false;
    }
    return ret->has_reward || ret->part_count == 0 || verdict_sum(ret, no);
}

static json_t *parse(struct slice body, struct refusal *no)
{
    json_error_t error = {0};
    json_t *json = text_is_shallow(body, LEVELS_MAX)
                       ? json_loadb((const char *)body.data, body.len, JSON_REJECT_DUPLICATES, &error)
                       : NULL;
    if (!json)
        refuse(no, REFUSAL_MALFORMED, "", "the body is no JSON%s%s", *error.text ? ": " : "", error.text);
    return json;
}

bool posted_read(struct slice body, const char *eval_kind, struct verdict *ret, struct refusal *no)
{
    if (body.len > POSTED_MAX)
        return refuse(no, REFUSAL_TOO_LARGE, "", "the body is %zu bytes; the maximum is %d", body.len, POSTED_MAX);
    if (text_strip(body).len == 0)
        return true;
    json_t *json = parse(body, no);
    if (!json)
        return false;
    const bool done = json_is_object(json) ? take(json, eval_kind, ret, no)
                                           : refuse(no, REFUSAL_WRONG_TYPE, "",
                                                    "the body must be an object, such as "
                                                    "{\"reward\": 1.0}");
    json_decref(json);
    return done;
}
