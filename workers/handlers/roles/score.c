#include "workers/handlers/roles/score.h"

#include <jansson.h>

#include "common/base/text.h"
#include "workers/handlers/roles/requests.h"

static bool wrong(struct refusal *no, const char *field, size_t at, const char *words)
{
    return refuse(no, REFUSAL_WRONG_TYPE, field, "%s[%zu]: %s", field, at, words);
}

/* NULL with a refusal. */
static json_t *read_list(struct slice json, const char *field, struct refusal *no)
{
    json_t *list = text_is_shallow(json, TEXT_LEVELS_MAX)
                       ? json_loadb((const char *)json.data, json.len, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    if (json_is_array(list))
        return list;
    json_decref(list);
    refuse(no, REFUSAL_WRONG_TYPE, field, "%s are not a list of objects", field);
    return NULL;
}

static bool add_part(struct verdict *verdict, const json_t *part, size_t at, struct refusal *no)
{
    const json_t *name = json_object_get(part, "name"), *value = json_object_get(part, "value");
    const json_t *weight = json_object_get(part, "weight");
    if (!json_is_string(name) || !json_is_number(value) || (weight && !json_is_number(weight)))
        return wrong(no, "parts", at, "a part is an object of name, a text, value, a number, and weight, a number");
    return verdict_add_part(verdict, json_string_value(name), json_number_value(value),
                            weight ? json_number_value(weight) : 1, no);
}

static bool add_test(struct verdict *verdict, const json_t *test, size_t at, struct refusal *no)
{
    const json_t *name = json_object_get(test, "name"), *seconds = json_object_get(test, "seconds");
    const char *status = json_string_value(json_object_get(test, "status"));
    enum test_status parsed;
    if (!json_is_string(name) || !status || !test_status_parse(slice_from_str(status), &parsed) ||
        (seconds && !json_is_null(seconds) && !json_is_number(seconds)))
        return wrong(no, "tests", at, "a test is an object of name and status: passed, failed, skipped or error");
    const double took = json_number_value(seconds);
    return verdict_add_test(verdict, json_string_value(name), parsed,
                            json_string_value(json_object_get(test, "message")), json_is_number(seconds) ? &took : NULL,
                            no);
}

static bool add_all(struct verdict *verdict, struct slice json, const char *field,
                    bool (*add)(struct verdict *verdict, const json_t *one, size_t at, struct refusal *no),
                    struct refusal *no)
{
    json_t *list = read_list(json, field, no);
    bool done = list != NULL;
    for (size_t i = 0; done && i < json_array_size(list); i++)
        done = add(verdict, json_array_get(list, i), i, no);
    json_decref(list);
    return done;
}

bool score_read(const struct msg_handler_score *score, const struct verdict *notes, struct verdict *ret,
                struct refusal *no)
{
    verdict_say(ret, "%.*s", SLICE_ARG(score->detail));
    for (size_t i = 0; i < notes->metric_count; i++)
        if (!verdict_add_metric(ret, notes->metrics[i].name, notes->metrics[i].value, no))
            return false;
    if ((score->has_metrics && !handler_take_metrics(score->metrics, ret, no)) ||
        (score->has_parts && !add_all(ret, score->parts, "parts", add_part, no)) ||
        (score->has_tests && !add_all(ret, score->tests, "tests", add_test, no)))
        return false;
    if (score->has_reward)
        return verdict_set_reward(ret, score->reward, no);
    if (ret->part_count > 0)
        return verdict_sum(ret, no);
    if (score->detail.len == 0)
        verdict_say(ret, "the evaluator gave no reward");
    return true;
}
