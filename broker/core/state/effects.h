/*
 * core/state/effects.h - the list of effects, and the memory they point into.
 */
#ifndef SLUICE_BROKER_CORE_STATE_EFFECTS_H
#define SLUICE_BROKER_CORE_STATE_EFFECTS_H

#include "broker/core/state/state.h"

/* Good until the next push. Never NULL: without memory the core has failed and it goes nowhere. */
struct effect *effect_push(struct core *core, enum effect_kind kind);
/* Bytes that stay as long as the effects do. */
struct slice effect_copy(struct core *core, struct slice bytes);
/* The same of a struct, where one may lie; NULL when out of memory. */
const void *effect_row(struct core *core, const void *row, size_t size);
struct slice effect_print(struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A message's bytes; empty if it breaks its schema (counted). */
struct slice effect_encode(struct core *core, enum message_id id, const void *message);

/* HEALTH_CHANGED; all is copied. */
void effect_health(struct core *core, const struct core_health *health, struct slice why);

/* "run:add-17/3", good as long as the effects. */
struct slice job_name(struct core *core, const struct job *job);
/* "add-17/3": of the rollout that the job is of. */
struct slice rollout_name(struct core *core, const struct job *job);

void send_client(struct core *core, struct slice client, enum message_id id, const void *message);
void send_worker(struct core *core, const struct worker *worker, enum message_id id, const void *message);
/* What the worker lets go of something for, of a result above all: not before all that is persisted is durable. */
void promise_worker(struct core *core, const struct worker *worker, enum message_id id, const void *message);
void send_done(struct core *core, const struct call *call, uint64_t count);
void send_cancel(struct core *core, const struct worker *worker, struct slice job, uint64_t token);
void promise_cancel(struct core *core, const struct worker *worker, struct slice job, uint64_t token);
/* `field` may be NULL; retry_after_ms 0 when trying again does not help. */
void send_refused(struct core *core, const struct call *call, enum refusal_reason reason, const char *field,
                  uint64_t retry_after_ms, const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
