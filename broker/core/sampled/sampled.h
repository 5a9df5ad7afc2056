/*
 * core/sampled/sampled.h - what samplers know of their groups: noted where it happens, and judged and written at the
 * end of the step (core/sampler/sampling.h).
 *
 * Nothing here moves a job or ends a rollout.
 */
#ifndef SLUICE_BROKER_CORE_SAMPLED_SAMPLED_H
#define SLUICE_BROKER_CORE_SAMPLED_SAMPLED_H

#include "broker/core/state/sampler.h"

struct job;
struct rollout;

/* A new one of a group, HELD and with the next number; NULL when out of memory. */
struct sampled *sampled_add(struct core *core, struct sampler *sampler, struct group *group);
/* It is of this live group from now on. */
void sampled_join(struct sampled *sampled, struct group *group);
/* Into the list of that state, where its number puts it. */
void sampled_move(struct core *core, struct sampled *sampled, enum sampled_state state);
/* Out of everything, its row too. */
void sampled_remove(struct core *core, struct sampled *sampled);
/* Something of it changed: it is looked at, and written, at the end of the step. */
void sampled_note(struct core *core, struct sampled *sampled);
void sampler_note(struct core *core, struct sampler *sampler);

/* ---- what happens to groups; of one without a sampler nothing is done -------------------- */

/* A run of it sampled so many tokens, whatever becomes of it ... */
void sampled_count_tokens(struct core *core, const struct job *job, uint64_t tokens);
/* ... and one that counts was sampled by this version, or a later one; 0: not known. */
void sampled_note_version(struct core *core, const struct job *job, uint64_t version);
/* A rollout of it has ended; `raw_reward` NULL: it has none. */
void sampled_note_end(struct core *core, const struct rollout *rollout, bool is_cancelled, const double *raw_reward);
/* Its last rollout has: the group may go. */
void sampled_note_close(struct core *core, struct group *group);
/* A rollout of it, or its init, would end infra: whether it is begun again instead, which is counted. */
bool sampled_replaces(struct core *core, struct group *group);
/* Trajectories up to `seq` are no longer kept, though the stream's sampler needs them. */
void sampled_note_forgotten(struct core *core, struct stream *stream, uint64_t seq);
/* The policy has a newer version than ever before. */
void samplers_note_version(struct core *core);

/* ---- verdicts (sampled/verdict.c): pure ------------------------------------------------------ */

/* How many versions its oldest turn is behind the newest; 0 where that is not known. */
uint64_t sampled_age(const struct core *core, const struct sampled *sampled);
/* Whether it is too old for its rule. */
bool sampled_is_stale(const struct core *core, const struct sampled *sampled);
enum sampler_count sampled_judge(const struct core *core, const struct sampled *sampled);
/* What has ended of it, at least `early` rollouts, has one reward. */
bool sampled_seems_uniform(const struct sampled *sampled);
double sampled_mean(const struct sampled *sampled);
const char *sampler_count_word(enum sampler_count count);

/* ---- samplers (sampled/samplers.c) ------------------------------------------------------------ */

/* NULL when out of memory. */
struct sampler *sampler_create(struct core *core, struct stream *stream);
/* With all its groups, which are ordinary ones then. */
void sampler_destroy(struct core *core, struct sampler *sampler);
void sampler_count(struct sampler *sampler, enum sampler_count count, uint64_t by);
/* A verdict that says something of tasks is remembered as one of late. */
void sampler_remember(struct sampler *sampler, enum sampler_count verdict);
/* Of a thousand groups so many are kept, as it was of late; one kept and one not are taken for granted. */
uint64_t sampler_acceptance(const struct sampler *sampler);
uint64_t sampler_recent(const struct sampler *sampler);
/* It waits for its batch no longer. */
void sampler_stop_waiting(struct core *core, struct sampler *sampler);

/* ---- rows (sampled/rows.c) -------------------------------------------------------------------- */

void sampler_persist(struct core *core, const struct sampler *sampler);
void sampler_persist_removed(struct core *core, const struct sampler *sampler);
void sampler_persist_answer(struct core *core, const struct sampler *sampler);
void sampled_persist(struct core *core, const struct sampled *sampled, bool present);

bool sampler_restore(struct core *core, const struct core_sampler *row, struct slice answer);
/* NULL: the row makes no sense, or there is no memory. Its group is the caller's to join. */
struct sampled *sampled_restore(struct core *core, const struct core_sampled *row);

#endif
