/*
 * core/queue/groups.h - the life of groups and rollouts, and how they end.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_GROUPS_H
#define SLUICE_BROKER_CORE_QUEUE_GROUPS_H

#include "broker/core/queue/jobs.h"

struct stream;

/* How a rollout is to end. */
struct ending {
    enum outcome outcome;
    bool trainable, has_reward, has_raw_reward;
    double reward, raw_reward; /* raw: before the task's shaping, where that made another of it */
    struct slice detail, record, verdict;
    uint64_t eval_ms;
};

/* The same as group_create, but that it is in no table: nothing finds it by its name. */
struct group *group_make(struct core *core, struct slice id, struct stream *stream, uint32_t samples,
                         uint64_t task_hash, const struct core_task *task);
/* A group whose rollouts wait for its init, not counted yet; NULL when out of memory. */
struct group *group_create(struct core *core, struct slice id, struct stream *stream, uint32_t samples,
                           uint64_t task_hash, const struct core_task *task);
/* Of a live group. */
struct slice group_task_id(const struct group *group);
/* Of a live group: there is a struct rollout for each of its rollouts from now on. False when out of memory. */
bool group_unfold(struct core *core, struct group *group);
/* `rollouts` of it are live from now on. */
void group_count(struct core *core, struct group *group, uint32_t rollouts);
/* All rollouts that have not ended end like this. */
void group_end(struct core *core, struct group *group, const struct ending *ending);
/* Once no rollout is live: lets go of what only live groups need. */
void group_close(struct core *core, struct group *group);
/* All its rollouts are acknowledged: only its name is kept ... */
void group_forget(struct core *core, struct group *group);
/* ... and that only of forgotten_max groups. Of the oldest at most so many go: all that was said of them is done. */
void groups_trim(struct core *core, size_t most);
void group_destroy(struct group *group);

void rollout_end(struct core *core, struct rollout *rollout, const struct ending *ending);
/* The end of whatever the job belongs to: one rollout, or an init job's whole group. */
void job_end(struct core *core, struct job *job, const struct ending *ending);

#endif
