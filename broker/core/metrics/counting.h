/*
 * core/metrics/counting.h - what happens in the core, counted for metrics.get.
 *
 * Each is called where the thing happens and does nothing but count; nothing is allocated. What only a worker knows
 * comes with job.result and is counted where the result ends its job, so once however often it is sent.
 */
#ifndef SLUICE_BROKER_CORE_METRICS_COUNTING_H
#define SLUICE_BROKER_CORE_METRICS_COUNTING_H

#include "broker/core/state/state.h"

extern const struct observed_bounds counting_rewards, counting_lags;

/* The result ends the job, which is still in its stage. */
void counting_result(struct core *core, struct job *job, const struct msg_job_result *in);
/* The job is handed out, having waited. */
void counting_wait(struct core *core, const struct job *job, int64_t waited_ms);
void counting_again(struct core *core, const struct job *job, enum again_why why);
void counting_loss(struct core *core, const struct worker *worker, enum loss_why why);
void counting_end(struct core *core, const struct stream *stream, enum outcome outcome, bool trainable,
                  const double *reward);
/* Rollouts of it were accepted: it is told apart from others, if there is room. */
void counting_stream(struct core *core, const struct stream *stream);
void counting_engine_error(struct engine *engine, enum engine_error error);

#endif
