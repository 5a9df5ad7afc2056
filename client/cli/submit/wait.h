/*
 * wait.h - `sluice submit --wait`: follows a stream until every rollout of some groups has ended.
 *
 * The position in the stream is taken before the first submit, so nothing is missed. Groups that
 * the broker knew already may have ended before that: their rollouts are asked for one by one, as
 * are those that are still missing when the stream has been silent for long, or was acknowledged
 * by somebody else: a rollout that cannot be had any more ends as "lost", and nothing waits for ever.
 */
#ifndef SLUICE_CLIENT_CLI_SUBMIT_WAIT_H
#define SLUICE_CLIENT_CLI_SUBMIT_WAIT_H

#include <stdio.h>

#include "client/cli/submit/tasks_file.h"
#include "client/sluice.h"

struct wait_sample {
    char outcome[16]; /* "" while it has not ended */
    bool trainable, has_reward;
    double reward;
};

struct wait_group {
    const struct task_line *line;
    const char *name; /* the line's */
    struct wait_sample *samples;
};

struct wait {
    struct sluice_client *client;
    const char *stream;
    FILE *out;                 /* a JSON line for each trajectory, or NULL */
    struct wait_group *groups; /* sorted by name */
    size_t group_count;
    uint64_t total, ended, trainable, rewarded;
    double reward_sum;
    bool quiet; /* no progress */
    bool draws; /* progress is drawn on a terminal */
    int64_t begun_ms, shown_ms, heard_ms;
    uint64_t shown; /* of ended, when progress was shown last */
};

/* Subscribes. Negative errno: the client has the sentence. */
int wait_open(struct wait *wait, struct sluice_client *client, const char *stream, const struct tasks_file *tasks);
/* Takes what comes for so long, or until all have ended. 0, or negative errno. */
int wait_for(struct wait *wait, int64_t timeout_ms);
/* Asks for every rollout of a group that has not ended. */
int wait_ask(struct wait *wait, struct wait_group *group, bool may_be_lost);
struct wait_group *wait_find(struct wait *wait, const char *name);
/* Until all have ended, with progress on stderr. */
int wait_all(struct wait *wait);
void wait_finish(struct wait *wait);
#define AUTO_WAIT __attribute__((cleanup(wait_finish))) struct wait

#endif
