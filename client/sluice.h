/*
 * sluice.h - the client library of Sluice, a rollout service.
 *
 * A client submits groups (one task, n rollouts) to a named stream and reads the
 * stream's trajectories. Submits are acknowledged when they are on the broker's
 * disk; the iterator gives each trajectory once and in order, across drops and
 * restarts of the broker. hello.c beside this file is the shortest whole use.
 *
 * A client belongs to one thread. Functions return 0, or a negative errno with a
 * sentence in sluice_error(client). Strings returned are borrowed until the next
 * call on the same client, unless said otherwise. Times are milliseconds.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_VERSION "0.1.0"

struct sluice_client;

/*
 * url: the broker's FRONT, "tcp://host:5750" (FEED is its port + 2) or "ipc:///dir/front"
 * (FEED is ipc:///dir/feed). NULL: $SLUICE_BROKER, else tcp://127.0.0.1:5750.
 * Connecting is lazy; a broker that is not there shows as -ETIMEDOUT from the first request.
 * NULL only when out of memory.
 */
struct sluice_client *sluice_connect(const char *url);
void sluice_close(struct sluice_client **client);
const char *sluice_error(const struct sluice_client *client);
/* How long a request may wait for its answer; default 10,000. */
void sluice_set_timeout(struct sluice_client *client, int64_t timeout_ms);

/*
 * Submits n rollouts of one task (a JSON object, docs/tasks.md). `group` names it;
 * the same name with the same content is the same group. samples 0: the task's own
 * number. 0 after it is on the broker's disk; -EINVAL refused for its content, -EAGAIN
 * the broker is full (try later), -EEXIST the name is taken.
 */
int sluice_submit(struct sluice_client *client, const char *group, const char *stream,
                  unsigned samples, const char *task_json);

/* One trajectory; arrays of equal length, borrowed until the next sluice_next or close. */
struct sluice_turn {
    uint32_t offset, length; /* tokens, within its trace */
    const char *role;        /* "prompt", "assistant" or "tool" */
    const char *finish, *engine, *version;
    uint32_t prompt_tokens, cached_tokens;
    double seconds;
};
struct sluice_trace {
    const uint32_t *token_ids;
    const uint8_t *mask;    /* 1: sampled by the policy */
    const float *logprobs;  /* 0 where mask is 0 */
    size_t token_count;
    const struct sluice_turn *turns;
    size_t turn_count;
    const char *reason; /* why this trace started, "" for the first */
};
struct sluice_message {
    const char *role, *content, *tool;
    int exit_status;
};
struct sluice_trajectory {
    const char *stream, *rollout, *group, *task;
    uint64_t seq;
    unsigned sample, attempt;
    const char *outcome; /* "ok", "agent", "task", "infra", "cancelled" */
    bool trainable, has_reward;
    double reward;
    const char *detail, *init_layer, *engine;
    uint64_t wait_ms, init_ms, run_ms, eval_ms, ended_ms;
    const struct sluice_trace *traces;
    size_t trace_count;
    const struct sluice_message *messages;
    size_t message_count;
};

/* Starts reading a stream from number `from` (1: its beginning; 0: the oldest kept). */
int sluice_subscribe(struct sluice_client *client, const char *stream, uint64_t from);
/*
 * The next trajectory of the subscribed stream, in order, each once. 0; -EAGAIN after
 * timeout_ms without one (-1: wait for ever); *ret is NULL then.
 */
int sluice_next(struct sluice_client *client, int64_t timeout_ms,
                const struct sluice_trajectory **ret);
/* As last heard: the stream's head number and how many accepted rollouts have not ended. */
void sluice_stream_state(const struct sluice_client *client, uint64_t *head, uint64_t *pending);
/* Trajectories up to seq may be forgotten by the broker. */
int sluice_ack(struct sluice_client *client, const char *stream, uint64_t seq);

/* One rollout: its trajectory, or *ret NULL and its state in words in *state. */
int sluice_get(struct sluice_client *client, const char *rollout,
               const struct sluice_trajectory **ret, const char **state);

/* Exactly one of the three is not NULL. *count: rollouts stopped. */
int sluice_cancel(struct sluice_client *client, const char *rollout, const char *group,
                  const char *stream, uint64_t *count);
int sluice_engine_add(struct sluice_client *client, const char *url);
int sluice_engine_remove(struct sluice_client *client, const char *url);
/* The broker's status, one JSON object. */
int sluice_status(struct sluice_client *client, const char **json);

#ifdef __cplusplus
}
#endif

#endif
