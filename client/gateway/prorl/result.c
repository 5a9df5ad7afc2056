#include "client/gateway/prorl/result.h"

#include <string.h>

#include "client/gateway/json_text.h"
#include "client/gateway/prorl/messages.h"

#define RESOLVED_ABOVE 0.99 /* ProRL's own bound */
#define TOTAL_WORDS "its total time"

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

static bool is_fault(const struct sluice_trajectory *t) { return is(t->outcome, "task") || is(t->outcome, "infra"); }

/* Where the service failed, or the time was over; NULL: nowhere. */
static const char *critical_error(const struct sluice_trajectory *t)
{
    if (is(t->end, "time") || (is_fault(t) && strncmp(t->detail, TOTAL_WORDS, strlen(TOTAL_WORDS)) == 0))
        return "timeout";
    if (!is_fault(t))
        return NULL;
    return !*t->agent ? "init" : *t->end ? "eval" : "run";
}

static void write_or_null(struct buffer *ret, const json_t *value)
{
    if (value)
        json_text_append_value(ret, value);
    else
        buffer_append_str(ret, "null");
}

/* Only of what no trainer may learn from: clients leave out every sample that has one. */
static void write_errors(struct buffer *ret, const struct sluice_trajectory *t)
{
    const char *critical = critical_error(t);
    const bool is_cancelled = is(t->outcome, "cancelled");
    if (critical)
        json_text_printf(ret, ",\"critical_error\":%s", critical);
    else
        buffer_append_str(ret, ",\"critical_error\":null");
    if (!is_cancelled && !is_fault(t)) {
        json_text_printf(ret, ",\"error\":null,\"filter\":%j", t->trainable ? "false" : "true");
        return;
    }
    struct buffer words = {0};
    if (is_cancelled)
        buffer_printf(&words, "cancelled: %s", t->detail);
    else
        buffer_printf(&words, "Error in %s: %s", critical, t->detail);
    buffer_append_str(ret, ",\"error\":");
    json_text_append(ret, buffer_peek(&words));
    if (!is_cancelled)
        json_text_printf(ret, ",\"traceback\":%s", t->detail);
    buffer_append_str(ret, ",\"filter\":true");
    buffer_finish(&words);
}

static void write_timing(struct buffer *ret, const struct sluice_trajectory *t)
{
    const char *critical = critical_error(t);
    json_text_printf(ret,
                     ",\"timing\":{\"init_time\":%g,\"run_time\":%g,\"eval_time\":%g,\"others_time\":%g,"
                     "\"counted_elapsed\":%g,\"timeout_triggered\":%j}",
                     (double)t->init_ms / 1000, (double)t->run_ms / 1000, (double)t->eval_ms / 1000,
                     (double)t->wait_ms / 1000, (double)(t->init_ms + t->run_ms + t->eval_ms) / 1000,
                     critical && is(critical, "timeout") ? "true" : "false");
}

static void write_tools(struct buffer *ret, const json_t *tools)
{
    buffer_append_str(ret, ",\"tools\":[");
    for (size_t i = 0; i < json_array_size(tools); i++)
        json_text_printf(ret, "%j{\"type\":\"function\",\"function\":{\"name\":%s}}", i ? "," : "",
                         json_string_value(json_array_get(tools, i)));
    buffer_append_str(ret, "]");
}

static void write_patch(struct buffer *ret, const struct sluice_trajectory *t)
{
    if (t->patch)
        json_text_printf(ret, ",\"git_patch\":%s", t->patch);
    else
        buffer_append_str(ret, ",\"git_patch\":null");
}

static bool ended_properly(const struct sluice_trajectory *t)
{
    return !t->truncated && !is(t->end, "format") && !is(t->end, "length") && !is(t->end, "");
}

static void write(const struct sluice_trajectory *t, const struct result_plan *plan, struct buffer *ret)
{
    const bool has_run = *t->agent != '\0';
    buffer_append_str(ret, "{\"instance_id\":");
    write_or_null(ret, plan->instance_id);
    buffer_append_str(ret, ",\"trajectory_id\":");
    write_or_null(ret, plan->trajectory_id);
    write_patch(ret, t);
    json_text_printf(ret, ",\"success\":%j,\"finish\":%j,\"end_properly\":%j,\"resolved\":%j",
                     is(t->outcome, "ok") ? "true" : "false", is(t->end, "done") ? "true" : "false",
                     ended_properly(t) ? "true" : "false",
                     t->has_reward && t->raw_reward > RESOLVED_ABOVE ? "true" : "false");
    write_errors(ret, t);
    write_timing(ret, t);
    write_tools(ret, has_run ? plan->tools : NULL);
    buffer_append_str(ret, ",\"messages\":");
    messages_write(t, plan->with_input_ids, ret);
    json_text_printf(ret, ",\"rollout\":%s,\"outcome\":%s,\"detail\":%s,\"reward\":", t->rollout, t->outcome,
                     t->detail);
    if (t->has_reward)
        json_text_append_number(ret, t->reward);
    else
        buffer_append_str(ret, "null");
    buffer_append_str(ret, ",\"other_traces\":");
    messages_write_others(t, ret);
    buffer_append_str(ret, "}");
}

bool result_write(const struct msg_trajectory *message, const struct result_plan *plan, struct buffer *ret,
                  struct refusal *no)
{
    struct trajectory_view view = {0};
    const bool is_read = trajectory_view_read(&view, message, no);
    if (is_read)
        write(&view.out, plan, ret);
    trajectory_view_finish(&view);
    return is_read;
}
