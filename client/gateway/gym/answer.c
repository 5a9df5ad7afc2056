#include "client/gateway/gym/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/gateway/gym/response.h"
#include "client/gateway/json_text.h"
#include "client/gateway/record/main_trace.h"
#include "client/gateway/record/other_traces.h"

/* What the answer says itself, whatever a column of that name held. */
static const char *const own[] = {"response",
                                  "reward",
                                  "reward_components",
                                  "mask_sample",
                                  "rollout",
                                  "outcome",
                                  "end",
                                  "truncated",
                                  "turns",
                                  "traces",
                                  "other_traces",
                                  "failure_kind",
                                  "failure_reason",
                                  "error",
                                  "_ng_failure_class",
                                  "_ng_failure_terminal",
                                  "_ng_no_persist"};

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (strcmp(own[i], name) == 0)
            return true;
    return false;
}

void answer_keep_columns(const json_t *row, struct buffer *ret)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)row, name, value)
    {
        if (is_own(name))
            continue;
        json_text_append(ret, slice_from_str(name));
        buffer_append_str(ret, ":");
        json_text_append_value(ret, value);
        buffer_append_str(ret, ",");
    }
}

static void begin(const struct sluice_trajectory *trajectory, const json_t *params, struct slice columns,
                  struct buffer *out)
{
    const struct response_asked asked = {.tools = json_object_get(params, "tools"),
                                         .model = json_string_value(json_object_get(params, "model")),
                                         .with_tokens = true};
    buffer_append_str(out, "{");
    buffer_append(out, columns.data, columns.len);
    buffer_append_str(out, "\"response\":");
    response_append(trajectory, &asked, out);
}

/* ---- what became of it ------------------------------------------------------------------------------------ */

/* The word for why it cannot be learned from; NULL: it can. */
static const char *trouble_of(const struct sluice_trajectory *t)
{
    if (!t->trainable)
        return strcmp(t->outcome, "ok") == 0 || strcmp(t->outcome, "agent") == 0 ? "untrainable" : t->outcome;
    if (!response_has_tokens(t))
        return "no_tokens";
    return t->has_reward ? NULL : "no_reward";
}

static void append_failure(const struct sluice_trajectory *t, const char *trouble, struct buffer *out)
{
    char kind[64];
    const bool is_cancelled = strcmp(trouble, "cancelled") == 0;
    const bool is_failure = is_cancelled || strcmp(trouble, "task") == 0 || strcmp(trouble, "infra") == 0 ||
                            strcmp(trouble, "no_tokens") == 0;
    snprintf(kind, sizeof(kind), "sluice:%s", trouble);
    json_text_printf(out, ",\"failure_kind\":%s,\"failure_reason\":%s", kind, t->detail);
    if (!is_failure)
        return;
    json_text_printf(out, ",\"error\":%s,\"_ng_failure_class\":%s", t->detail, kind);
    if (strcmp(trouble, "task") == 0)
        buffer_append_str(out, ",\"_ng_failure_terminal\":true");
    if (is_cancelled) /* asked for again, when the collection goes on */
        buffer_append_str(out, ",\"_ng_no_persist\":true");
}

/* Only where they add up to the reward, as its readers hold them to. */
static void append_components(const struct sluice_trajectory *t, struct buffer *out)
{
    double sum = 0;
    for (size_t i = 0; i < t->part_count; i++)
        sum += t->parts[i].weight * t->parts[i].value;
    if (t->part_count == 0 || !t->has_reward || fabs(sum - t->reward) > 1e-9)
        return;
    buffer_append_str(out, ",\"reward_components\":{");
    for (size_t i = 0; i < t->part_count; i++) {
        buffer_append_str(out, i > 0 ? "," : "");
        json_text_append(out, slice_from_str(t->parts[i].name));
        json_text_printf(out, ":%g", t->parts[i].weight * t->parts[i].value);
    }
    buffer_append_str(out, "}");
}

/* Those that the response does not tell of, where there are some. */
static void append_others(const struct sluice_trajectory *t, struct buffer *out)
{
    const struct sluice_trace *told = main_trace(t);
    if (t->trace_count <= (told != NULL))
        return;
    buffer_append_str(out, ",\"other_traces\":");
    other_traces_append(t, told, out);
}

void answer_append(const struct sluice_trajectory *t, const json_t *params, struct slice columns, struct buffer *out)
{
    const char *trouble = trouble_of(t);
    begin(t, params, columns, out);
    json_text_printf(out, ",\"reward\":%g,\"mask_sample\":%j", t->has_reward ? t->reward : 0.0,
                     trouble ? "true" : "false");
    append_components(t, out);
    json_text_printf(out, ",\"rollout\":%s,\"outcome\":%s,\"end\":%s,\"truncated\":%j,\"turns\":%u,\"traces\":%u",
                     t->rollout, t->outcome, t->end, t->truncated ? "true" : "false",
                     (uint64_t)trajectory_sampled_turns(t), (uint64_t)t->trace_count);
    append_others(t, out);
    if (trouble)
        append_failure(t, trouble, out);
    buffer_append_str(out, "}");
}

void answer_append_failure(const json_t *params, struct slice columns, const char *failure, const char *words,
                           bool is_lasting, struct buffer *out)
{
    char kind[96];
    snprintf(kind, sizeof(kind), "sluice:%s", failure);
    begin(NULL, params, columns, out);
    json_text_printf(out,
                     ",\"reward\":0.0,\"mask_sample\":true,\"failure_kind\":%s,\"failure_reason\":%s,\"error\":%s,"
                     "\"_ng_failure_class\":%s%j}",
                     kind, words, words, kind, is_lasting ? ",\"_ng_failure_terminal\":true" : "");
}
