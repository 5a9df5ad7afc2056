#include "workers/stages/run_end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schemas/limits.h"
#include "workers/jobs/trace_counts.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"

bool run_end_pack(struct job *job, struct stage_sandbox *stage, enum blame_who who, bool goes_on)
{
    struct fail fail = {0};
    activity_enter(PHASE_PACKING);
    fiber_lift_deadline(stage_closing_by(stage));
    int code = (goes_on ? layer_snapshot : layer_pack)(&job->context->layers, stage->sandbox, &job->result.layer,
                                                       &fail);
    fiber_pop_deadline();
    activity_leave(PHASE_PACKING);
    stage->fault = job->result.layer.fault;
    if (code == -ENAMETOOLONG || code == -EFBIG || code == -EBUSY)
        job_set_outcome(job, blame_get(who, BLAME_TREE).outcome, "the files cannot be packed: %s", fail.text);
    else if (code == -ETIMEDOUT && !sandbox_breach(stage->sandbox))
        job_set_fault(job, OUTCOME_INFRA, stage->fault, "the files were not packed within %d s", JOB_PACK_MS / 1000);
    else if (code < 0)
        stage_end_failed(job, stage, who, code, &fail);
    if (code < 0 && job->result.outcome == OUTCOME_AGENT)
        strcpy(job->result.layer.digest, LAYER_UNKNOWN); /* or what was there before would be scored */
    return code == 0;
}

/* What it was sampled with, which is the same in all traces: else it is not to be trained on. */
static void keep_identity(struct job *job, const struct record *record)
{
    struct job_result *result = &job->result;
    for (size_t i = 0; i < record->trace_count; i++) {
        const struct record_trace *trace = &record->traces[i];
        if (i == 0) {
            memcpy(result->tokenizer_digest, trace->tokenizer_digest, sizeof(result->tokenizer_digest));
            memcpy(result->template_digest, trace->template_digest, sizeof(result->template_digest));
        } else if ((result->outcome == OUTCOME_OK || result->outcome == OUTCOME_AGENT) &&
                   (strcmp(result->tokenizer_digest, trace->tokenizer_digest) != 0 ||
                    strcmp(result->template_digest, trace->template_digest) != 0)) {
            job_set_fault(job, OUTCOME_INFRA, FAULT_ENGINE,
                          "the engine's tokenizer or chat template was another one from trace %zu on", i + 1);
            return;
        }
    }
}

/* Of the agent that wrote it: how it ended, and how long it went on. */
static void keep_end(struct job *job, const struct agent_run *run, const char *end)
{
    struct record *record = run->record;
    struct job_result *result = &job->result;
    const struct record_sampled sampled = record_sampled(record);
    const char *finish = sampled.last ? sampled.last->finish : "";
    result->sampled_tokens = sampled.tokens;
    result->turns = sampled.turns;
    buffer_clear(&result->traces);
    trace_counts_write(record, &result->traces);
    result->oldest_version = run->age.oldest;
    snprintf(record->end, sizeof(record->end), "%s", end);
    record->truncated = strcmp(finish, "length") == 0 || strcmp(end, "context") == 0;
    record->attempt = (uint32_t)job->start.attempt;
    result->truncated = record->truncated;
}

static void keep_record(struct job *job, const struct record *record)
{
    struct refusal no = {0};
    const bool has_breach = record->sandbox && record->sandbox->breach_count > 0;
    if (record->trace_count == 0 && record->message_count == 0 && !has_breach && !record->noted)
        return;
    buffer_clear(&job->result.record);
    keep_identity(job, record);
    if (record_encode(record, &job->result.record, &no))
        return;
    buffer_clear(&job->result.record);
    job_set_outcome(job, OUTCOME_INFRA, "the record cannot be written: %s: %s", no.field, no.text);
}

void run_end_record(struct job *job, const struct agent_run *run)
{
    keep_end(job, run, run->end);
    keep_record(job, run->record);
}

/* Its words, behind a mark where its last turns were further from the first than the task lets them. */
static void say_end(struct job *job, const struct agent_run *run, struct blame blame, const char *words)
{
    const bool has_worked = blame.outcome == OUTCOME_OK || blame.outcome == OUTCOME_AGENT;
    if (has_worked && staleness_is_marked(&run->age, job->task))
        job_set_fault(job, blame.outcome, blame.fault, STALE_MARK "a turn was %llu versions behind; %s",
                      (unsigned long long)run->age.most, words);
    else
        job_set_fault(job, blame.outcome, blame.fault, "%s", words);
}

static void say_breach(struct job *job, const struct agent_run *run, const char *breach)
{
    char words[96];
    const enum limit_id id = limit_find(breach);
    strcpy(job->result.layer.digest, LAYER_UNKNOWN);
    snprintf(words, sizeof(words), "the agent went over its %s limit (%s)", breach,
             id < LIMIT_COUNT ? limit_get(id)->field : "limits");
    say_end(job, run, blame_get(BLAME_AGENT, BLAME_LIMIT), words);
}

void run_end(struct job *job, struct stage_sandbox *stage, const struct agent_run *run, enum outcome outcome,
             bool is_late)
{
    const bool is_stale = outcome == OUTCOME_CANCELLED && run->fault == FAULT_STALE;
    const char *breach = stage->sandbox ? sandbox_breach(stage->sandbox) : NULL;
    if ((outcome == OUTCOME_CANCELLED && !is_stale) || fiber_is_cancelled()) {
        job_set_outcome(job, OUTCOME_CANCELLED, "cancelled");
        return;
    }
    if (breach && run->fault != FAULT_STALE)
        say_breach(job, run, breach);
    else if (outcome == OUTCOME_TASK || outcome == OUTCOME_INFRA || is_stale || !stage->sandbox ||
             task_is_evaluated_by_run(job->task) || run_end_pack(job, stage, BLAME_AGENT, false))
        say_end(job, run, (struct blame){.outcome = outcome, .fault = run->fault}, run->detail);
    keep_end(job, run, breach ? "limit" : run->end);
    if (stage_record_usage(stage, is_late, run->record) && stage_record_touched(stage, run->record))
        keep_record(job, run->record);
    else
        job_set_outcome(job, OUTCOME_INFRA, "the record cannot be written: out of memory");
}
