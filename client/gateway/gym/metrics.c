#include "client/gateway/gym/metrics.h"

#include <stdlib.h>

#include "client/gateway/gym/columns.h"
#include "common/base/cleanup.h"

#define TASK_INDEX "_ng_task_index"
#define ROLLOUT_INDEX "_ng_rollout_index"

/* Numbers that name an answer and measure nothing. */
static const char *const indices[] = {TASK_INDEX, ROLLOUT_INDEX, "_ng_attempt_index", NULL};

struct answer_of {
    long long task, rollout;
    const json_t *answer;
};

static bool has_failed(const json_t *answer)
{
    const json_t *failure = json_object_get(answer, "_ng_failure_class");
    return (failure && !json_is_null(failure)) || json_is_true(json_object_get(answer, "_ng_no_persist"));
}

static int compare(const void *a, const void *b)
{
    const struct answer_of *x = a, *y = b;
    const int by_task = (x->task > y->task) - (x->task < y->task);
    return by_task ? by_task : (x->rollout > y->rollout) - (x->rollout < y->rollout);
}

/* Those that count, in the order of their tasks. */
static struct answer_of *sorted_answers(const json_t *answers, size_t *count)
{
    struct answer_of *ret = calloc(json_array_size(answers) + 1, sizeof(*ret));
    *count = 0;
    for (size_t i = 0; ret && i < json_array_size(answers); i++) {
        const json_t *answer = json_array_get(answers, i);
        if (json_is_object(answer) && !has_failed(answer))
            ret[(*count)++] = (struct answer_of){json_integer_value(json_object_get(answer, TASK_INDEX)),
                                                 json_integer_value(json_object_get(answer, ROLLOUT_INDEX)), answer};
    }
    if (ret)
        qsort(ret, *count, sizeof(*ret), compare);
    return ret;
}

static const json_t *usage_of(const json_t *answer)
{
    return json_object_get(json_object_get(answer, "response"), "usage");
}

static bool add_all(struct columns *columns, const struct answer_of *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!row_columns_add(columns, list[i].answer, indices) ||
            !row_columns_add(columns, usage_of(list[i].answer), indices))
            return false;
    return true;
}

/* One answer's own numbers. */
static void append_info(const struct answer_of *of, struct buffer *out)
{
    const json_t *parts[] = {of->answer, usage_of(of->answer)};
    buffer_printf(out, "{\"rollout_id\":\"%lld:%lld\"", of->task, of->rollout);
    for (size_t i = 0; i < 2; i++) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)parts[i], name, value)
        {
            if (!json_is_number(value) && !json_is_boolean(value))
                continue;
            buffer_append_str(out, ",");
            json_text_append(out, slice_from_str(name));
            buffer_append_str(out, ":");
            if (json_is_boolean(value))
                buffer_append_str(out, json_is_true(value) ? "1" : "0");
            else
                json_text_append_value(out, value);
        }
    }
    buffer_append_str(out, "}");
}

static bool append_group(struct columns *columns, const struct answer_of *list, size_t count, struct buffer *out)
{
    const bool is_whole = add_all(columns, list, count);
    buffer_printf(out, "{\"" TASK_INDEX "\":%lld,", list->task);
    columns_append(columns, false, out);
    buffer_printf(out, "%s\"num_rollouts\":%zu,\"rollout_infos\":[", columns->count ? "," : "", count);
    for (size_t i = 0; i < count; i++) {
        buffer_append_str(out, i > 0 ? "," : "");
        append_info(&list[i], out);
    }
    buffer_append_str(out, "]}");
    columns_clear(columns);
    return is_whole;
}

static bool append_groups(struct columns *columns, const struct answer_of *list, size_t count, struct buffer *out)
{
    bool is_whole = true;
    for (size_t from = 0, to; from < count && is_whole; from = to) {
        to = from + 1;
        while (to < count && list[to].task == list[from].task)
            to++;
        buffer_append_str(out, from > 0 ? "," : "");
        is_whole = append_group(columns, list + from, to - from, out);
    }
    return is_whole;
}

void metrics_aggregate(struct http_call *call)
{
    const json_t *answers = json_object_get(call->body, "verify_responses");
    size_t count;
    if (!json_is_array(answers)) {
        http_call_refuse(call, 422, refusal_wire(REFUSAL_WRONG_TYPE), "verify_responses",
                         "verify_responses must be a list");
        return;
    }
    AUTO_FREE struct answer_of *list = sorted_answers(answers, &count);
    AUTO_FREE struct columns *columns = calloc(1, sizeof(*columns));
    struct buffer body = {0};
    bool is_whole = list && columns && add_all(columns, list, count);
    if (is_whole) {
        buffer_append_str(&body, "{\"agent_metrics\":{");
        columns_append(columns, false, &body);
        buffer_append_str(&body, "},\"key_metrics\":{");
        columns_append(columns, true, &body);
        buffer_append_str(&body, "},\"group_level_metrics\":[");
        columns_clear(columns);
        is_whole = append_groups(columns, list, count, &body);
        buffer_append_str(&body, "]}");
    }
    if (is_whole && !body.failed)
        http_call_answer_json(call, 200, &body);
    else
        http_call_refuse_memory(call);
    if (columns)
        columns_clear(columns);
    buffer_finish(&body);
}
