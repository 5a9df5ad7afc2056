#include "broker/core/metrics/counting.h"
#include "broker/core/metrics/named.h"
#include "schemas/metrics/times.h"

const struct observed_bounds counting_rewards = {.count = 11,
                                                 .at = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}};
const struct observed_bounds counting_lags = {.count = 8, .at = {0, 1, 2, 4, 8, 16, 32, 64}};

/* ---- results ------------------------------------------------------------------------------ */

static void count_sandboxes(struct core *core, struct slice sender, const struct observed *times)
{
    const struct worker *worker = worker_find(core, sender);
    named_join(core, &core->metrics.sandboxes, slice_from_str(worker && worker->sandbox ? worker->sandbox : ""), times);
}

static void count_times(struct core *core, struct engine_spent *spent, const struct msg_job_result *in)
{
    static const char tool[] = TIMES_TOOL;
    const size_t mark = sizeof(tool) - 1;
    struct times_entry entry;
    for (size_t at = 0; times_next(in->times, &at, &entry);) {
        if (slice_is(entry.name, TIMES_ENGINE))
            observed_join(&spent->calls, &entry.times);
        else if (slice_is(entry.name, TIMES_SANDBOX))
            count_sandboxes(core, in->worker, &entry.times);
        else if (entry.name.len > mark && memcmp(entry.name.data, tool, mark) == 0)
            named_join(core, &core->metrics.tools, slice_of(entry.name.data + mark, entry.name.len - mark),
                       &entry.times);
    }
}

static void count_traces(struct core *core, struct slice text)
{
    struct slice reason;
    uint64_t count;
    for (size_t at = 0; traces_next(text, &at, &reason, &count);)
        named_join(core, &core->metrics.traces, reason, &(struct observed){.counts = {count}});
}

/* How far its oldest turn was behind, of a run that has worked. */
static void count_lag(struct core *core, const struct msg_job_result *in)
{
    enum outcome outcome;
    if (outcome_parse(in->outcome, &outcome) && (outcome == OUTCOME_OK || outcome == OUTCOME_AGENT) &&
        in->has_oldest_version && in->oldest_version <= core->versions)
        observed_add(&core->metrics.policy_lag, &counting_lags, (double)(core->versions - in->oldest_version));
}

static void count_spent(struct engine_spent *spent, const struct msg_job_result *in, bool is_run)
{
    spent->turns += is_run ? in->turns : 0;
    spent->sampled_tokens += is_run ? in->sampled_tokens : 0;
    spent->prompt_tokens += in->prompt_tokens;
    spent->cached_tokens += in->cached_tokens;
}

void counting_result(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct metrics *metrics = &core->metrics;
    struct engine *engine = job_engine(job);
    struct engine_spent *spent = engine ? &engine->spent : &metrics->unknown;
    const bool is_run = job->stage == STAGE_RUN;
    observed_add(&metrics->stage_seconds[job->stage], &observed_seconds, (double)in->ms / 1000);
    if (in->has_eval_outcome && is_run)
        observed_add(&metrics->stage_seconds[STAGE_EVAL], &observed_seconds, (double)in->eval_ms / 1000);
    count_spent(spent, in, is_run);
    count_times(core, spent, in);
    if (!is_run)
        return;
    count_traces(core, in->traces);
    count_lag(core, in);
}

/* ---- the rest ------------------------------------------------------------------------------ */

void counting_wait(struct core *core, const struct job *job, int64_t waited_ms)
{
    observed_add(&core->metrics.queue_seconds[job->stage], &observed_seconds, (double)waited_ms / 1000);
}

void counting_again(struct core *core, const struct job *job, enum again_why why)
{
    core->metrics.again[job->stage][why]++;
}

void counting_loss(struct core *core, const struct worker *worker, enum loss_why why)
{
    core->metrics.lost[worker->stage][why]++;
}

void counting_end(struct core *core, const struct stream *stream, enum outcome outcome, bool trainable,
                  const double *reward)
{
    core->metrics.trainable[outcome] += trainable;
    if (!reward)
        return;
    struct observed one = {.sum = *reward};
    one.counts[observed_class(&counting_rewards, *reward)] = 1;
    named_join(core, &core->metrics.rewards, stream_name(stream), &one);
}

void counting_stream(struct core *core, const struct stream *stream)
{
    named_see(core, &core->metrics.rewards, stream_name(stream));
}

void counting_engine_error(struct engine *engine, enum engine_error error) { engine->errors[error]++; }
