/*
 * What a result does. The first good one of a job's stage, in the run at hand, wins, whichever dispatch it is
 * of, from the worker that the dispatch was issued to (core/queue/fencing_tokens.c); every one is acknowledged, so that
 * its worker forgets it.
 */
#include "broker/core/workers/results.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/probes.h"
#include "broker/core/engines/blame.h"
#include "broker/core/engines/images.h"
#include "broker/core/engines/policies.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/queue/failures.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/workers/worker_ids.h"

/* ---- transitions: (stage, outcome) -> what happens. The job is in no place. -------- */

static void init_ok(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct group *group = job->group;
    struct group_work *work = group->work;
    struct effect *persist = effect_push(core, PERSIST_INIT);
    persist->group = effect_copy(core, group_id(group));
    persist->layer_digest = in->layer_digest;
    persist->layer = in->layer;
    persist->ms = in->ms;
    work->init_done = true;
    job_clear(job);
    image_works(core, work->image);
    work->init_layer = core_strdup(core, in->layer_digest);
    for (uint32_t k = 0; group_unfold(core, group) && k < group->samples; k++)
        if (!work->rollouts[k].ended)
            job_queue(core, &work->rollouts[k].job, false);
}

/* It is not recorded: its group has, or is to have, other ids and other prompts. */
static void run_mixed(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct slice why = effect_print(core,
                                    "it was sampled with another tokenizer or chat template than "
                                    "its policy (%s) has: tokenizer %.*s, "
                                    "template %.*s",
                                    job->group->work->policy->name, SLICE_ARG(in->tokenizer_digest),
                                    SLICE_ARG(in->template_digest));
    core->counters.mixed++;
    if (job_engine(job))
        counting_engine_error(job_engine(job), ENGINE_ERROR_IDENTITY);
    job_fail(core, job,
             &(struct failure){.outcome = OUTCOME_INFRA, .fault = FAULT_ENGINE, .worker = in->worker, .detail = why});
}

/* With a reward or without, as the task has it. An eval job's record is that of its run with what a teacher said. */
static void end_scored(struct core *core, struct job *job, const struct msg_job_result *in, struct slice detail,
                       uint64_t eval_ms)
{
    enum outcome outcome = (enum outcome)job_rollout(job)->run_outcome;
    job_end(core, job,
            &(struct ending){.outcome = outcome,
                             .trainable = outcome_is_trainable(outcome) && !(in->has_filtered && in->filtered),
                             .has_reward = in->has_reward,
                             .reward = in->has_reward ? in->reward : 0,
                             .has_raw_reward = in->has_reward && in->has_raw_reward,
                             .raw_reward = in->has_reward && in->has_raw_reward ? in->raw_reward : 0,
                             .record = job->stage == STAGE_EVAL ? in->record : slice_of(NULL, 0),
                             .verdict = in->verdict,
                             .detail = detail,
                             .eval_ms = eval_ms});
}

/*
 * It was evaluated in the agent's own sandbox, which is gone: nothing can be tried again, and the rollout ends. What
 * the agent left when its run was cut short is not known; a broken evaluator is the task's fault.
 */
static void end_evaluated(struct core *core, struct job *job, const struct msg_job_result *in)
{
    enum outcome outcome;
    if (!outcome_parse(in->eval_outcome, &outcome))
        outcome = OUTCOME_TASK;
    if (outcome == OUTCOME_OK) {
        end_scored(core, job, in, in->eval_detail, in->eval_ms);
        return;
    }
    const bool is_agents = outcome == OUTCOME_AGENT && job_rollout(job)->run_outcome == OUTCOME_AGENT;
    core->counters.task += !is_agents;
    job_end(core, job,
            &(struct ending){.outcome = is_agents ? OUTCOME_AGENT : OUTCOME_TASK,
                             .verdict = in->verdict,
                             .detail = in->eval_detail,
                             .eval_ms = in->eval_ms});
}

static void run_done(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct rollout *rollout = job_rollout(job);
    if (!policy_admits(core, job, in)) {
        run_mixed(core, job, in);
        return;
    }
    enum outcome outcome = OUTCOME_OK;
    outcome_parse(in->outcome, &outcome);
    struct slice rollout_id = rollout_name(core, job);
    struct slice engine = effect_copy(core, engine_url(rollout->engine));
    struct effect *persist = effect_push(core, PERSIST_RUN);
    persist->group = effect_copy(core, group_id(job->group));
    persist->rollout = rollout_id;
    persist->sample = job->sample;
    persist->stream = effect_copy(core, stream_name(job->group->stream));
    persist->outcome = outcome;
    persist->detail = in->detail;
    persist->layer_digest = in->layer_digest;
    persist->layer = in->layer;
    persist->answer = in->answer;
    persist->record = in->record;
    persist->ms = in->ms;
    persist->has_length = in->has_sampled_tokens && in->has_truncated;
    persist->sampled_tokens = in->has_sampled_tokens ? in->sampled_tokens : 0;
    persist->truncated = in->has_truncated && in->truncated;
    persist->engine = engine;
    if (rollout->engine)
        engine_works(core, rollout->engine);
    sampled_note_version(core, job, in->has_oldest_version ? in->oldest_version : 0);
    rollout->run_outcome = (uint8_t)outcome;
    rollout->detail = core_strdup(core, in->detail);
    rollout->record_bytes = (uint32_t)in->record.len;
    rollout->avoids_engine = false;
    if (in->has_eval_outcome) {
        end_evaluated(core, job, in);
        return;
    }
    job_begin_stage(job, STAGE_EVAL);
    job_queue(core, job, false);
}

static void eval_ok(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct engine *judge = in->has_reward || in->record.len ? job_engine(job) : NULL;
    if (judge)
        engine_works(core, judge);
    end_scored(core, job, in, in->detail, in->ms);
}

static struct failure failure_of(const struct job *job, const struct msg_job_result *in, enum outcome outcome)
{
    return (struct failure){.outcome = outcome,
                            .fault = fault_parse(in->fault),
                            .worker = in->worker,
                            .detail = in->detail,
                            .record = job->stage == STAGE_RUN ? in->record : slice_of(NULL, 0),
                            .eval_ms = job->stage == STAGE_EVAL ? in->ms : 0};
}

static void task_fault(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct failure failure = failure_of(job, in, OUTCOME_TASK);
    blame_failure(core, job, &failure);
    job_fail(core, job, &failure);
}

static bool is_agents_end(struct job *job)
{
    return job->stage == STAGE_EVAL && job_rollout(job)->run_outcome == OUTCOME_AGENT;
}

/* What the agent left when its run was cut short is not known: there is nothing to score and nothing to learn from.
 * Of any other run that is no word of an evaluator's. */
static void eval_agent(struct core *core, struct job *job, const struct msg_job_result *in)
{
    if (is_agents_end(job))
        job_end(core, job, &(struct ending){.outcome = OUTCOME_AGENT, .detail = in->detail, .eval_ms = in->ms});
    else
        task_fault(core, job, in);
}

static void infra_fault(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct failure failure = failure_of(job, in, OUTCOME_INFRA);
    if (failure.fault == FAULT_STALE && job->stage == STAGE_RUN)
        job_refresh(core, job);
    else if (blame_failure(core, job, &failure))
        job_fail_uncounted(core, job, &failure);
    else
        job_fail(core, job, &failure);
}

static void end_stale(struct core *core, struct job *job, const struct msg_job_result *in)
{
    core->counters.stale++;
    job_end(core, job, &(struct ending){.outcome = OUTCOME_CANCELLED, .detail = in->detail, .record = in->record});
}

/* Who gives back is leaving: until its next beat says otherwise it is given nothing. */
static void given_back(struct core *core, struct job *job, const struct msg_job_result *in)
{
    if (job->stage == STAGE_RUN && fault_parse(in->fault) == FAULT_STALE) {
        end_stale(core, job, in);
        return;
    }
    struct worker *sender = worker_find(core, in->worker);
    if (sender) {
        sender->draining = true;
        worker_refresh(core, sender);
    }
    job_return(core, job);
}

static void (*const transitions[STAGE_COUNT][OUTCOME_COUNT])(struct core *, struct job *,
                                                             const struct msg_job_result *) = {
    /*              ok        agent       task        infra        cancelled */
    [STAGE_INIT] = {init_ok, task_fault, task_fault, infra_fault, given_back},
    [STAGE_RUN] = {run_done, run_done, task_fault, infra_fault, given_back},
    [STAGE_EVAL] = {eval_ok, eval_agent, task_fault, infra_fault, given_back},
};

/* ---- job.result -------------------------------------------------------------------- */

/*
 * The good work of any dispatch of this run counts, and what it says of the task, but this only once; only the
 * dispatch at hand can fail otherwise.
 */
static bool may_end(struct job *job, const struct fencing_token *issued, enum outcome outcome)
{
    if (transitions[job->stage][outcome] == task_fault ||
        (transitions[job->stage][outcome] == eval_agent && !is_agents_end(job)))
        return !issued->is_fenced;
    if (outcome != OUTCOME_INFRA && outcome != OUTCOME_CANCELLED)
        return true;
    return job->place == PLACE_ORPHAN ? !issued->is_fenced
                                      : job->place == PLACE_LEASED && job->course->token == issued->token;
}

/* The job that the result ends, or NULL where it does not count. */
static struct job *find_ended(struct core *core, const struct call *call, enum outcome outcome)
{
    const struct msg_job_result *in = call->in;
    struct job *job = job_find(core, in->job);
    const struct fencing_token *issued = job ? fencing_token_find(job, in->token, call->caller->name, in->worker)
                                             : NULL;
    if (job && !issued)
        core->counters.unissued++;
    else if (!job || !may_end(job, issued, outcome))
        core->counters.duplicates++;
    return issued && may_end(job, issued, outcome) ? job : NULL;
}

static void take_note(struct core *core, struct job *job, const struct msg_job_result *in)
{
    if (job->stage == STAGE_INIT)
        job->group->work->init_ms = core_ms(in->ms);
    if (job->stage == STAGE_RUN) {
        job_rollout(job)->run_ms = core_ms(in->ms);
        sampled_count_tokens(core, job, in->has_sampled_tokens ? in->sampled_tokens : 0);
    }
    if (job->course->token != in->token) /* another dispatch's engine: unknown by now */
        job_set_engine(core, job, NULL);
}

/* `sender` keeps its result until it is acknowledged: no later dispatch to it is at work. */
static void take_result(struct core *core, const struct call *call, const struct worker *sender, struct job *job,
                        enum outcome outcome)
{
    const struct msg_job_result *in = call->in;
    if (job->place == PLACE_LEASED && job->course->worker != sender)
        job_withdraw(core, job);
    else
        job_leave(core, job);
    take_note(core, job, in);
    job_course(job)->token = in->token;
    counting_result(core, job, in);
    transitions[job->stage][outcome](core, job, in);
}

/* Of a job that is still to be done nothing was kept, and its worker must let go before it is handed out again. */
static void acknowledge(struct core *core, const struct worker *sender, const struct msg_job_result *in)
{
    const struct msg_result_ack ack = {.job = in->job, .token = in->token};
    (job_find(core, in->job) ? send_worker : promise_worker)(core, sender, MSG_result_ack, &ack);
}

void handle_job_result(struct core *core, const struct call *call)
{
    const struct msg_job_result *in = call->in;
    struct worker *sender;
    enum outcome outcome;
    core->counters.results++;
    if (!worker_speaks(core, call, in->worker, &sender))
        return;
    if (!outcome_parse(in->outcome, &outcome)) {
        core->counters.mistakes++;
        outcome = OUTCOME_INFRA;
    }
    struct job *job = find_ended(core, call, outcome);
    if (job)
        take_result(core, call, sender, job, outcome);
    acknowledge(core, sender, in);
}
