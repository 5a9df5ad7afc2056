#include "broker/core/queue/failures.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- budgets ----------------------------------------------------------------------- */

/* What was done for it counts no more, on disk neither: the run, or the group's init, is done again. */
static void begin_anew(struct core *core, struct job *job)
{
    struct rollout *rollout = job_rollout(job);
    const struct slice rollout_id = rollout ? rollout_name(core, job) : slice_of(NULL, 0);
    struct effect *persist = effect_push(core, PERSIST_AGAIN);
    persist->group = effect_copy(core, group_id(job->group));
    persist->rollout = rollout_id;
    persist->sample = job->sample;
    if (rollout) {
        rollout->is_run_again |= job->stage == STAGE_EVAL;
        rollout->avoids_engine = false;
        rollout->record_bytes = 0;
        free(rollout->detail);
        rollout->detail = NULL;
    }
    job_begin_stage(job, rollout ? STAGE_RUN : STAGE_INIT);
    job_queue(core, job, false);
}

/* A sampler's is replaced, so that its group has as many rewards as it should. */
static void set_aside(struct core *core, struct job *job, const struct failure *failure)
{
    if (failure->outcome == OUTCOME_INFRA && sampled_replaces(core, job->group)) {
        begin_anew(core, job);
        counting_again(core, job, AGAIN_REPLACED);
        return;
    }
    job_end(core, job,
            &(struct ending){.outcome = failure->outcome,
                             .detail = failure_summary(core, job, failure->detail),
                             .record = failure->record,
                             .eval_ms = failure->eval_ms});
}

static int64_t back_off_ms(const struct core *core, uint32_t failures)
{
    int64_t wait_ms = core->settings.retry_first_ms;
    for (uint32_t i = 1; i < failures && wait_ms < core->settings.retry_last_ms; i++)
        wait_ms *= 2;
    return wait_ms < core->settings.retry_last_ms ? wait_ms : core->settings.retry_last_ms;
}

/* The dispatch at hand is over: it is never adopted, and its failure never counts, again. */
static void fence(struct job *job)
{
    fencing_tokens_fence(job, job->course->token);
    if (job->course->failures && job->course->token > job->course->failures->fenced_up_to)
        job->course->failures->fenced_up_to = job->course->token;
}

/* Out of its place, with the failure in its history; NULL when out of memory. */
static struct job_failures *take_failed(struct core *core, struct job *job, const struct failure *failure)
{
    struct rollout *rollout = job_rollout(job);
    job_leave(core, job);
    core->counters.infra += failure->outcome == OUTCOME_INFRA;
    core->counters.task += failure->outcome == OUTCOME_TASK;
    if (failure->outcome == OUTCOME_INFRA &&
        (job->stage == STAGE_RUN ? failure->fault != FAULT_HANDLER
                                 : job->stage == STAGE_EVAL && failure->fault == FAULT_ENGINE))
        rollout->avoids_engine = true;
    struct job_failures *failures = history_note_failure(core, job, failure);
    fence(job);
    return failures;
}

/* What its run left cannot be read, whoever tried: the run is done again, once, from init's layer. */
static bool must_run_again(struct job *job, const struct failure *failure)
{
    return job->stage == STAGE_EVAL && failure->outcome == OUTCOME_INFRA && failure->fault == FAULT_STORE &&
           !job_rollout(job)->is_run_again;
}

static void run_again(struct core *core, struct job *job)
{
    core->counters.run_again++;
    begin_anew(core, job);
    counting_again(core, job, AGAIN_STORE);
}

void job_fail(struct core *core, struct job *job, const struct failure *failure)
{
    struct job_failures *failures = take_failed(core, job, failure);
    if (!failures)
        return;
    bool is_task = failure->outcome == OUTCOME_TASK;
    uint16_t *count = is_task ? &failures->tasks : &failures->infras;
    *count += *count < UINT16_MAX;
    if (*count >= (is_task ? core->settings.task_budget : core->settings.infra_budget)) {
        if (must_run_again(job, failure))
            run_again(core, job);
        else
            set_aside(core, job, failure);
        return;
    }
    history_persist(core, job);
    counting_again(core, job, is_task ? AGAIN_TASK : AGAIN_INFRA);
    job_delay(core, job, back_off_ms(core, *count));
}

void job_fail_uncounted(struct core *core, struct job *job, const struct failure *failure)
{
    core->counters.uncounted++;
    if (!take_failed(core, job, failure))
        return;
    counting_again(core, job, AGAIN_UNCOUNTED);
    job_queue(core, job, false); /* others try first what it has failed at */
}

void job_go_missing(struct core *core, struct job *job)
{
    struct job_failures *failures = history_open(core, job);
    core->counters.missing++;
    if (!failures)
        return;
    failures->missing += failures->missing < UINT8_MAX;
    if (failures->missing > core->settings.infra_budget || failures->missing == UINT8_MAX) {
        static const char why[] = "it was handed out again and again, and no worker kept it";
        job_fail(core, job,
                 &(struct failure){
                     .outcome = OUTCOME_INFRA, .worker = slice_from_str("no worker"), .detail = slice_from_str(why)});
        return;
    }
    job_leave(core, job);
    fence(job);
    history_persist(core, job);
    counting_again(core, job, AGAIN_MISSING);
    job_queue(core, job, true);
}

static void hand_back(struct core *core, struct job *job, enum again_why why)
{
    counting_again(core, job, why);
    job_leave(core, job);
    fence(job);
    job_queue(core, job, true);
}

void job_return(struct core *core, struct job *job)
{
    core->counters.returned++;
    hand_back(core, job, AGAIN_RETURNED);
}

void job_evict(struct core *core, struct job *job)
{
    core->counters.mixed++;
    job_withdraw(core, job);
    hand_back(core, job, AGAIN_MIXED);
}

void job_refresh(struct core *core, struct job *job)
{
    core->counters.refreshed++;
    hand_back(core, job, AGAIN_STALE);
}

void job_lose_worker(struct core *core, struct job *job, struct slice worker, bool alone)
{
    job_leave(core, job);
    struct slice name = effect_copy(core, worker);
    struct job_failures *failures = history_note(
        core, job, alone ? "its worker was lost, it ran there alone" : "its worker was lost", name);
    core->counters.suspects++;
    if (!failures)
        return;
    failures->deaths += failures->deaths < UINT8_MAX;
    if (alone) {
        core->counters.blamed++;
        failures->blames += failures->blames < UINT16_MAX;
    }
    if (failures->blames < core->settings.blame_budget) {
        history_persist(core, job);
        counting_again(core, job, AGAIN_LOST);
        job_queue(core, job, true);
        return;
    }
    struct slice why = effect_print(core, "its worker %.*s was lost while it ran there alone", SLICE_ARG(name));
    set_aside(core, job, &(struct failure){.outcome = OUTCOME_INFRA, .detail = why});
}
