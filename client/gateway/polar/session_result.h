/*
 * session_result.h - a rollout that has ended as Polar's SessionResult: its trajectory with a trace for each trace of
 * ours, whose three arrays of the response have one length. What cannot be learned from has no mask of 1.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_SESSION_RESULT_H
#define SLUICE_CLIENT_GATEWAY_POLAR_SESSION_RESULT_H

#include <jansson.h>

#include "client/gateway/polar/tasks.h"
#include "client/sluice.h"

/* COMPLETED, TIMEOUT or ERROR. */
const char *session_status_of(const struct sluice_trajectory *trajectory);
/* Its reward, if it has one. `evaluator`: its strategy, or NULL. */
bool session_reward_of(const struct sluice_trajectory *trajectory, const char *evaluator, double *ret);
/* Whether it was completed, and anything in it can be learned from. */
bool session_is_usable(const struct sluice_trajectory *trajectory);
/* {"timing": ...} of Polar's names, as far as they are known. */
void session_append_timing(uint64_t wait_ms, uint64_t init_ms, uint64_t run_ms, uint64_t eval_ms, struct buffer *out);

/* kept: what was asked with its task (task_request.h). early_stop: others were enough; 0: they were not. */
void session_result_append(const struct sluice_trajectory *trajectory, const json_t *kept, unsigned early_stop,
                           struct buffer *out);
/* One that was lost with a ledger: ERROR, without a trace. */
void session_result_append_lost(const struct polar_task *task, unsigned sample, struct buffer *out);

#endif
