/*
 * sluice.h - the client library of Sluice, a rollout service.
 *
 * A client submits groups (one task, n rollouts) to a named stream and reads the
 * stream's trajectories. Submits are acknowledged when they are on the broker's
 * disk; the iterator gives each trajectory once and in order, across drops and
 * restarts of the broker. hello.c beside this file is the shortest whole use.
 *
 * Requests may be repeated without harm, and are: while the broker is away or restarts, a call
 * waits and asks again until its timeout (-ETIMEDOUT). Refusals: -EINVAL the request's content,
 * -EAGAIN the broker is full, -EEXIST, -ENOENT no such thing, -EHOSTUNREACH the task needs an
 * engine and none is registered, -ENODATA no longer kept, -EPROTO the broker is of another version.
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
/* Where it connects to: what was asked for, or the default. */
const char *sluice_url(const struct sluice_client *client);
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

/*
 * The same for many groups at once, which is much faster than one after the other. Each group's
 * own `result` is as above; the return value is 0 when every result is 0, else the first that is
 * not, with its sentence. Those that were not reached have -ECANCELED.
 */
struct sluice_group {
    const char *group, *stream, *task_json;
    unsigned samples;
    int result;              /* set: 0 or a negative errno */
    bool known;              /* set: the broker had it already */
    unsigned accepted;       /* set: how many trajectories will follow */
    uint64_t retry_after_ms; /* set with -EAGAIN: when to try again */
};
int sluice_submit_many(struct sluice_client *client, struct sluice_group *groups, size_t count);

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
    const char *agent, *template_digest, *logprobs_mode; /* "" when the agent never ran */
    uint64_t wait_ms, init_ms, run_ms, eval_ms, ended_ms;
    const struct sluice_trace *traces;
    size_t trace_count;
    const struct sluice_message *messages;
    size_t message_count;
};

/*
 * Starts reading a stream from number `from` (1: its beginning; 0: the oldest kept). A stream
 * that does not exist yet is one that has nothing yet. A client reads one stream at a time; a
 * second call changes to another.
 */
int sluice_subscribe(struct sluice_client *client, const char *stream, uint64_t from);
/*
 * The next trajectory of the subscribed stream, in order, each once. 0; -EAGAIN after
 * timeout_ms without one (-1: wait for ever); *ret is NULL then. -EINTR: a signal came.
 * -ENODATA: the number is no longer kept. -EBADMSG: a record that cannot be read, which the next
 * call passes over. -ESTALE: the broker has another ledger than before, in which this stream is shorter.
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
