#include "workers/jobs/result.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "schemas/messages/message_max.h"
#include "workers/runtime/spent.h"

enum { ANSWER_MAX = 65536 };

void result_fit_answer(struct job_result *result)
{
    static const char mark[] = "<think>";
    if (!result->answer)
        return;
    text_repair(result->answer);
    const struct slice whole = slice_from_str(result->answer);
    if (whole.len <= ANSWER_MAX)
        return;
    const uint8_t *open = text_find_last(whole, mark), *closed = text_find_last(whole, "</think>");
    const size_t mark_len = open && (!closed || closed < open) ? strlen(mark) : 0;
    const struct slice tail = text_tail_slice(whole, ANSWER_MAX - mark_len);
    const size_t at = mark_len > 0 && open < tail.data ? mark_len : 0; /* else it is in the tail */
    memmove(result->answer + at, tail.data, tail.len);
    memcpy(result->answer, mark, at);
    result->answer[at + tail.len] = '\0';
}

static void put_products(struct msg_job_result *message, const struct job_result *result)
{
    message->layer_digest = slice_from_str(result->layer.digest);
    message->has_layer_digest = message->layer_digest.len > 0;
    message->layer = buffer_peek(&result->layer.inlined);
    message->has_layer = message->layer.len > 0;
    if (result->answer) {
        message->answer = slice_from_str(result->answer);
        message->has_answer = true;
    }
    message->record = buffer_peek(&result->record);
    message->has_record = message->record.len > 0;
    message->tokenizer_digest = slice_from_str(result->tokenizer_digest);
    message->has_tokenizer_digest = message->tokenizer_digest.len > 0;
    message->template_digest = slice_from_str(result->template_digest);
    message->has_template_digest = message->template_digest.len > 0;
}

/* What a run sampled: a sampler of the broker counts it. */
static void put_sampled(struct msg_job_result *message, const struct job *job)
{
    enum { TOKENS_MAX = MESSAGE_MAX(job_result, sampled_tokens) };
    const struct job_result *result = &job->result;
    message->has_sampled_tokens = slice_is(job->start.stage, stage_wire(STAGE_RUN));
    message->sampled_tokens = result->sampled_tokens < TOKENS_MAX ? result->sampled_tokens : TOKENS_MAX;
    message->has_oldest_version = message->has_sampled_tokens && result->oldest_version > 0;
    message->oldest_version = result->oldest_version;
}

/* What it took, for metrics: only what there was. */
static void put_spent(struct msg_job_result *message, const struct job_result *result, struct buffer *times)
{
    const struct spent *spent = result->spent;
    message->turns = result->turns;
    message->has_turns = message->turns > 0;
    message->traces = buffer_peek(&result->traces);
    message->has_traces = message->traces.len > 0;
    if (!spent)
        return;
    message->prompt_tokens = spent->prompt_tokens;
    message->has_prompt_tokens = message->prompt_tokens > 0;
    message->cached_tokens = spent->cached_tokens;
    message->has_cached_tokens = message->cached_tokens > 0;
    spent_write(spent, times);
    message->times = buffer_peek(times);
    message->has_times = message->times.len > 0;
}

/* What the task's shaping asks of a run, and what it made of an evaluation. */
static void put_shaping(struct msg_job_result *message, const struct job *job)
{
    const struct job_result *result = &job->result;
    const bool is_run = slice_is(job->start.stage, stage_wire(STAGE_RUN));
    message->has_truncated = is_run && job->task && task_is_shaped(job->task);
    message->truncated = result->truncated;
    message->has_raw_reward = message->has_reward && result->has_raw_reward;
    message->raw_reward = result->raw_reward;
    message->has_filtered = message->filtered = result->filtered;
}

/* A broken evaluator's tests say what broke; its reward is none. False with a refusal:
 * the verdict breaks its schema. */
static bool put_verdict(struct msg_job_result *message, const struct job_result *result, struct buffer *bytes,
                        struct refusal *no)
{
    const struct verdict *verdict = &result->verdict;
    const struct job_evaluation *evaluation = &result->evaluation;
    const enum outcome evaluated = evaluation->is_done ? evaluation->outcome : result->outcome;
    message->has_reward = verdict->has_reward && evaluated == OUTCOME_OK;
    message->reward = verdict->reward;
    message->has_verdict = verdict_has_details(verdict);
    if (message->has_verdict && !verdict_encode(verdict, bytes, no))
        return false;
    message->verdict = buffer_peek(bytes);
    return true;
}

static void put_fault(struct msg_job_result *message, const struct job_result *result)
{
    bool may_blame = result->outcome == OUTCOME_TASK || result->outcome == OUTCOME_INFRA ||
                     result->outcome == OUTCOME_CANCELLED;
    message->fault = slice_from_str(fault_wire(result->fault));
    message->has_fault = may_blame && message->fault.len > 0;
}

static void put_evaluation(struct msg_job_result *message, struct job_evaluation *evaluation)
{
    const char *detail = evaluation->detail ? evaluation->detail : "";
    message->has_eval_outcome = message->has_eval_detail = message->has_eval_ms = evaluation->is_done;
    message->eval_outcome = slice_from_str(outcome_wire(evaluation->outcome));
    message->eval_detail = slice_from_str(detail);
    message->eval_ms = evaluation->ms;
}

static void put_end(struct msg_job_result *message, const struct job_result *result)
{
    message->outcome = slice_from_str(outcome_wire(result->outcome));
    message->detail = slice_from_str(result->detail);
    message->has_detail = message->detail.len > 0;
    put_fault(message, result);
}

bool result_encode(struct job *job, const char *worker, uint64_t token, uint64_t ms, struct buffer *out)
{
    struct job_result *result = &job->result;
    struct msg_job_result message = {.worker = slice_from_str(worker), .job = job->start.job, .token = token, .ms = ms};
    text_sanitize(result->detail);
    put_end(&message, result);
    result_fit_answer(result);
    put_products(&message, result);
    AUTO_BUFFER verdict = {0};
    AUTO_BUFFER times = {0};
    struct refusal no;
    bool fits = put_verdict(&message, result, &verdict, &no);
    put_evaluation(&message, &result->evaluation);
    put_sampled(&message, job);
    put_shaping(&message, job);
    put_spent(&message, result, &times);
    if (fits && message_encode(MSG_job_result, &message, out, &no))
        return !out->failed;
    job_set_outcome(job, OUTCOME_INFRA, "the result cannot be sent: %s: %s", no.field, no.text);
    return result_encode_bare(job->start.job, worker, token, ms, result, out);
}

bool result_encode_bare(struct slice job, const char *worker, uint64_t token, uint64_t ms,
                        const struct job_result *result, struct buffer *out)
{
    struct msg_job_result message = {.worker = slice_from_str(worker), .job = job, .token = token, .ms = ms};
    put_end(&message, result);
    struct refusal no;
    return message_encode(MSG_job_result, &message, out, &no) && !out->failed;
}

void result_finish(struct job_result *result)
{
    layer_finish(&result->layer);
    buffer_finish(&result->record);
    buffer_finish(&result->traces);
    verdict_finish(&result->verdict);
    free(take_ptr(&result->evaluation.detail));
    free(take_ptr(&result->answer));
}
