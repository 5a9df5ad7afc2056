#include "client/gateway/polar/session_result.h"

#include <stdio.h>
#include <string.h>

#include "client/gateway/record/arrays.h"
#include "client/gateway/record/main_trace.h"
#include "common/base/cleanup.h"

/* ---- what became of it ------------------------------------------------------------------------------------- */

static bool has_outcome(const struct sluice_trajectory *t, const char *outcome)
{
    return strcmp(t->outcome, outcome) == 0;
}

const char *session_status_of(const struct sluice_trajectory *t)
{
    if (!has_outcome(t, "ok") && !has_outcome(t, "agent"))
        return "ERROR";
    return strcmp(t->end, "time") == 0 ? "TIMEOUT" : "COMPLETED";
}

bool session_reward_of(const struct sluice_trajectory *t, const char *evaluator, double *ret)
{
    if (evaluator && strcmp(evaluator, "session_completed") == 0) {
        *ret = strcmp(session_status_of(t), "COMPLETED") == 0;
        return true;
    }
    *ret = t->reward;
    return t->has_reward;
}

static bool is_learnt(const struct sluice_trajectory *t)
{
    for (size_t i = 0; i < t->trace_count && t->trainable; i++)
        if (trace_is_learnt(&t->traces[i]))
            return true;
    return false;
}

bool session_is_usable(const struct sluice_trajectory *t)
{
    return strcmp(session_status_of(t), "COMPLETED") == 0 && is_learnt(t);
}

/* ---- a trace ------------------------------------------------------------------------------------------------- */

static void append_messages(const struct trace_words *words, size_t from, size_t to, struct buffer *out)
{
    buffer_append_str(out, "[");
    for (size_t i = from; i < to; i++)
        json_text_printf(out, i > from ? ",{\"role\":%s,\"content\":%s}" : "{\"role\":%s,\"content\":%s}",
                         words->list[i]->role, words->list[i]->content);
    buffer_append_str(out, "]");
}

/* Of what cannot be learned from all is 0. */
static void append_mask(const struct sluice_trace *trace, size_t from, bool trainable, struct buffer *out)
{
    AUTO_FREE uint8_t *none = trainable ? NULL : calloc(trace->token_count + 1, 1);
    if (!trainable && !none)
        out->failed = true;
    else
        arrays_append_mask(out, trainable ? trace->mask + from : none, trace->token_count - from);
}

static const struct sluice_turn *first_sampled(const struct sluice_trace *trace)
{
    for (size_t i = 0; i < trace->turn_count; i++)
        if (turn_is_sampled(&trace->turns[i]))
            return &trace->turns[i];
    return NULL;
}

static void append_words(const struct sluice_trajectory *t, const struct sluice_trace *trace, struct buffer *out)
{
    struct trace_words words;
    if (!trace_words_read(t, trace, &words)) {
        out->failed = true;
        return;
    }
    const size_t first = trace_words_of(&words, 0);
    buffer_append_str(out, ",\"prompt_messages\":");
    append_messages(&words, 0, first, out);
    buffer_append_str(out, ",\"response_messages\":");
    append_messages(&words, first, words.count, out);
    trace_words_finish(&words);
}

static void append_trace(const struct sluice_trajectory *t, const struct sluice_trace *trace, const char *reward,
                         struct buffer *out)
{
    const struct sluice_turn *first = first_sampled(trace), *last = trace_last_sampled(trace);
    const size_t from = first ? first->offset : trace->token_count;
    buffer_append_str(out, "{\"prompt_ids\":");
    arrays_append_ids(out, trace->token_ids, from);
    buffer_append_str(out, ",\"response_ids\":");
    arrays_append_ids(out, trace->token_ids + from, trace->token_count - from);
    buffer_append_str(out, ",\"loss_mask\":");
    append_mask(trace, from, t->trainable, out);
    buffer_append_str(out, ",\"response_logprobs\":");
    arrays_append_logprobs(out, trace->logprobs + from, trace->token_count - from);
    append_words(t, trace, out);
    json_text_printf(out,
                     ",\"tools\":null,\"finish_reason\":%s,\"reward\":%j,\"metadata\":{\"label\":%s,\"reason\":%s,"
                     "\"policy_version\":%s}}",
                     last && last->finish[0] ? last->finish : "stop", reward, trace->label, trace->reason,
                     last ? last->version : "");
}

/* ---- a trajectory --------------------------------------------------------------------------------------------- */

/* "name": the value as JSON, or null. */
static void append_member(struct buffer *out, const char *name, const json_t *value)
{
    json_text_printf(out, ",%s:", name);
    if (value)
        json_text_append_value(out, value);
    else
        buffer_append_str(out, "null");
}

static void append_early(struct buffer *out, unsigned early_stop)
{
    if (early_stop > 0)
        json_text_printf(out,
                         ",\"early_stop_cancelled\":true,\"fully_masked\":true,\"early_stop_reason\":"
                         "\"minimum_usable_sessions_reached\",\"early_stop_min_usable_sessions\":%u",
                         (uint64_t)early_stop);
}

static void append_metadata(const struct sluice_trajectory *t, const json_t *kept, unsigned early_stop,
                            const char *session_id, size_t traces, struct buffer *out)
{
    const uint64_t turns = traces > 0 ? trajectory_sampled_turns(t) : 0, count = traces;
    const char *builder = json_string_value(json_object_get(kept, "builder"));
    const json_t *metadata = json_object_get(kept, "metadata");
    json_text_printf(out, "{\"builder\":%s,\"session_id\":%s,\"api_type\":\"openai_chat\",\"model_used\":%s",
                     builder ? builder : "per_request", session_id, "policy");
    append_member(out, "task_id", json_object_get(kept, "task_id"));
    append_member(out, "model_requested", json_object_get(kept, "model"));
    json_text_printf(out,
                     ",\"record_count\":%u,\"trace_count\":%u,\"reconstruction_stats\":{\"chains_total\":%u,"
                     "\"chains_reconstructed_full\":%u,\"chains_reconstructed_truncated\":0,\"completions_total\":%u,"
                     "\"completions_merged\":%u},\"rollout\":%s,\"outcome\":%s,\"end\":%s,\"truncated\":%j",
                     turns, count, count, count, turns, turns > count ? turns - count : 0, t->rollout, t->outcome,
                     t->end, t->truncated ? "true" : "false");
    append_early(out, early_stop);
    buffer_append_str(out, ",\"task_metadata\":");
    if (metadata)
        json_text_append_value(out, metadata);
    else
        buffer_append_str(out, "{}");
    buffer_append_str(out, "}");
}

void session_append_timing(uint64_t wait_ms, uint64_t init_ms, uint64_t run_ms, uint64_t eval_ms, struct buffer *out)
{
    json_text_printf(out,
                     "{\"register_to_init_queue_ms\":%u,\"init_ms\":%u,\"run_ms\":%u,\"eval_ms\":%u,\"postrun_ms\":%u,"
                     "\"e2e_ms\":%u}",
                     wait_ms, init_ms, run_ms, eval_ms, eval_ms, wait_ms + init_ms + run_ms + eval_ms);
}

static void append_error(const struct sluice_trajectory *t, unsigned early_stop, struct buffer *out)
{
    AUTO_BUFFER words = {0};
    if (strcmp(session_status_of(t), "COMPLETED") == 0) {
        buffer_append_str(out, "null");
        return;
    }
    if (early_stop > 0)
        buffer_printf(&words, "cancelled: the task's minimum of %u usable sessions was reached", early_stop);
    else
        buffer_printf(&words, "%s: %s", has_outcome(t, "agent") ? "timeout" : t->outcome, t->detail);
    json_text_append(out, buffer_peek(&words));
}

static void append_result_metadata(const json_t *kept, unsigned early_stop, struct buffer *out)
{
    const char *name;
    json_t *value;
    AUTO_BUFFER members = {0};
    append_early(&members, early_stop);
    json_object_foreach(json_object_get(kept, "metadata"), name, value) append_member(&members, name, value);
    buffer_append_str(out, "{");
    if (members.len > 0)
        buffer_append(out, members.data + 1, members.len - 1); /* without its first comma */
    buffer_append_str(out, "}");
}

static void append_traces(const struct sluice_trajectory *t, const json_t *kept, size_t count, struct buffer *out)
{
    double number;
    AUTO_BUFFER reward = {0};
    if (session_reward_of(t, json_string_value(json_object_get(kept, "evaluator")), &number))
        json_text_append_number(&reward, number);
    else
        buffer_append_str(&reward, "null");
    buffer_append(&reward, "", 1);
    buffer_append_str(out, ",\"traces\":[");
    for (size_t i = 0; i < count && !reward.failed; i++) {
        buffer_append_str(out, i > 0 ? "," : "");
        append_trace(t, &t->traces[i], (const char *)reward.data, out);
    }
    buffer_append_str(out, "]");
}

void session_result_append(const struct sluice_trajectory *t, const json_t *kept, unsigned early_stop,
                           struct buffer *out)
{
    const char *status = session_status_of(t);
    const size_t traces = strcmp(status, "ERROR") == 0 ? 0 : t->trace_count;
    char session_id[48];
    if (!has_outcome(t, "cancelled"))
        early_stop = 0;
    session_id_of(t->group, t->sample, session_id);
    json_text_printf(out, "{\"session_id\":%s,\"status\":%s", session_id, status);
    append_member(out, "task_id", json_object_get(kept, "task_id"));
    json_text_printf(out, ",\"trajectory\":{\"status\":%s,\"metadata\":", status);
    append_metadata(t, kept, early_stop, session_id, traces, out);
    append_traces(t, kept, traces, out);
    buffer_append_str(out, ",\"error\":");
    append_error(t, early_stop, out);
    buffer_append_str(out, "},\"timing\":");
    session_append_timing(t->wait_ms, t->init_ms, t->run_ms, t->eval_ms, out);
    buffer_append_str(out, ",\"node_id\":null,\"error\":");
    append_error(t, early_stop, out);
    buffer_append_str(out, ",\"metadata\":");
    append_result_metadata(kept, early_stop, out);
    buffer_append_str(out, "}");
}

void session_result_append_lost(const struct polar_task *task, unsigned sample, struct buffer *out)
{
    char rollout[BOOK_GROUP_SIZE + 16], words[256];
    snprintf(rollout, sizeof(rollout), "%s/%u", task->group, sample);
    snprintf(words, sizeof(words), "the broker no longer knows the rollout %s: its ledger was replaced by another one",
             rollout);
    const struct sluice_trajectory t = {
        .group = task->group, .rollout = rollout, .sample = sample, .outcome = "infra", .detail = words, .end = ""};
    json_t *kept = json_pack("{s:s*,s:s*}", "task_id", task->id, "model", task->model);
    session_result_append(&t, kept, 0, out);
    json_decref(kept);
}
