/*
 * sluice.h - the client library of Sluice, a rollout service.
 *
 * A client submits groups (one task, n rollouts) to a named stream and reads the
 * stream's trajectories. Submits are acknowledged when they are on the broker's
 * disk; the iterator gives each trajectory once and in order, across drops and
 * restarts of the broker. hello.c beside this file is the shortest whole use.
 *
 * Requests may be repeated without harm, and are: while the broker is away or restarts, a call
 * waits and asks again until its timeout. Nothing waits for ever unless it is told to, with -1:
 * sluice_set_timeout bounds a request, sluice_set_patience a broker that is full or does not speak.
 *
 * -ETIMEDOUT no broker answered. Refusals, with the broker's own words: -EINVAL the request's
 * content, -EACCES this key may not, -EAGAIN the broker is full or its disk is (later it may have
 * room), -ENOSPC it would not fit however long one waits, -EEXIST another thing has this name,
 * -ENOENT no such thing, -EHOSTUNREACH the task needs an engine and none is registered, -ENODATA
 * no longer kept, -EIO a back-up failed, -EPROTO the broker is of another version.
 *
 * A client belongs to one thread. Functions return 0, or a negative errno with a
 * sentence in sluice_error(client). Strings returned are borrowed until the next
 * call on the same client, unless said otherwise. Times are milliseconds.
 *
 * The library is one module: each file of this folder defines some of these functions.
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
/*
 * Proves to the broker who this is, with a file from `sluice keys add`. Default: $SLUICE_KEY, if
 * set. NULL: no key. -EBUSY: after the first request, and all stays as it was; -EACCES: others can read the file;
 * -EINVAL: it is no trainer's or admin's key. A broker that refuses the key, or wants one, shows as -EACCES from
 * requests, after their timeout.
 */
int sluice_set_key(struct sluice_client *client, const char *path);
/*
 * Without a key a client connects to this machine only (ipc, loopback), and else fails with -EACCES,
 * unless this is called, or SLUICE_ALLOW_PLAINTEXT is 1.
 */
void sluice_allow_plaintext(struct sluice_client *client);
const char *sluice_error(const struct sluice_client *client);
/* Whether the last call that failed did so because no broker answered at sluice_url(client). */
bool sluice_is_silent(const struct sluice_client *client);
/* Where it connects to: what was asked for, or the default. */
const char *sluice_url(const struct sluice_client *client);
/* How long a request may wait for its answer; default 10,000. */
void sluice_set_timeout(struct sluice_client *client, int64_t timeout_ms);
/*
 * How long a submit waits for room while a full broker takes none of its groups, and how long
 * sluice_next bears a broker that does not answer; default 600,000, -1: for ever. 0: a submit that
 * finds no room is -EAGAIN at once.
 */
void sluice_set_patience(struct sluice_client *client, int64_t patience_ms);

/*
 * Submits n rollouts of one task (a JSON object, docs/tasks.md). `group` names it;
 * the same name with the same content is the same group. samples 0: the task's own
 * number. 0 after it is on the broker's disk; -EINVAL refused for its content, -EAGAIN
 * the broker had no room for all the client's patience, -ENOSPC it will never have, -EEXIST the
 * name is taken.
 */
int sluice_submit(struct sluice_client *client, const char *group, const char *stream, unsigned samples,
                  const char *task_json);

/*
 * The same for many groups at once, which is much faster than one after the other. Each group's
 * own `result` is as above; the return value is 0 when every result is 0, else the first that is
 * not, with its sentence; -EAGAIN only when no other failed for good. Those that were not reached have -ECANCELED:
 * submit all of them again, nothing is submitted twice. A struct that is all zeros but for the first four members is a
 * group as sluice_submit makes it.
 *
 * Within a stream, rollouts of a higher priority, 0 to 9, are handed out first; without one it is
 * 5 (-EINVAL: `priority` is set and has_priority is not). lease_ms, 1000 to 604,800,000 or 0 for
 * none: the group's rollouts are cancelled when no request has named the stream for so long, that
 * is when the trainer is gone. Reading the stream and sluice_renew are such requests.
 */
struct sluice_group {
    const char *group, *stream, *task_json;
    unsigned samples;
    bool has_priority;
    unsigned priority;
    uint64_t lease_ms;
    int result;              /* set: 0 or a negative errno */
    bool known;              /* set: the broker had it already */
    unsigned accepted;       /* set: how many trajectories will follow */
    uint64_t retry_after_ms; /* set with -EAGAIN: when to try again */
};
int sluice_submit_many(struct sluice_client *client, struct sluice_group *groups, size_t count);
/*
 * After a submit: what the broker will soon refuse. After sluice_subscribe and sluice_follow: that nothing was ever
 * submitted to the stream, whose name may be mistyped. "" for nothing.
 */
const char *sluice_warning(const struct sluice_client *client);
/*
 * The stream's trainer is alive: leases of its groups start anew. For a trainer that does not call
 * sluice_next for long, which does this by itself every 5 s (more often if this client submitted
 * with a lease of less than 15 s). *count, if wanted: the rollouts under a lease.
 */
int sluice_renew(struct sluice_client *client, const char *stream, uint64_t *count);

/* One trajectory; arrays of equal length, borrowed until the next sluice_next or close. */
struct sluice_sampling { /* as the engine was asked */
    double temperature, top_p, min_p;
    unsigned top_k, max_tokens; /* top_k 0: off */
    int64_t seed;               /* -1: the engine's choice */
};
struct sluice_span {         /* of a turn's tokens, what one version of the policy sampled */
    uint32_t offset, length; /* within the turn */
    const char *version;
};
struct sluice_turn {
    uint32_t offset, length; /* tokens, within its trace */
    const char *role;        /* "prompt", "assistant", "user" or "tool" */
    const char *finish, *engine, *version;
    const char *masked; /* assistant: the label for which its mask is 0; "": none */
    uint32_t prompt_tokens, cached_tokens;
    double seconds;
    double queue_seconds, prefill_seconds, decode_seconds; /* as the engine said; -1: it did not */
    const struct sluice_sampling *sampling;                /* assistant; NULL: not known */
    const struct sluice_span
        *versions; /* where `version` joins several and the engine said which is which; else none */
    size_t version_count;
};
struct sluice_column {       /* of a trace, by name: a row for each token from `offset` on (docs/trajectory.md) */
    const char *name, *type; /* "u8", "i8", "u16", "i16", "u32", "i32", "f16" or "f32" */
    uint32_t offset, rows;
    const uint32_t *shape; /* of one element; none: it is one value */
    size_t shape_count;
    const uint32_t *counts; /* of each row's elements; NULL: one */
    const void *values;
    size_t value_bytes;
};
struct sluice_stretch { /* a run of the trajectory's messages */
    uint32_t offset, length;
};
struct sluice_trace {
    const uint32_t *token_ids;
    const uint8_t *mask;   /* 1: sampled by the policy */
    const float *logprobs; /* 0 where mask is 0 */
    size_t token_count;
    const struct sluice_turn *turns;
    size_t turn_count;
    const struct sluice_column *columns;
    size_t column_count;
    const struct sluice_stretch *messages; /* a harness's: what was said in it, in order; else none */
    size_t stretch_count;
    const char *reason;                             /* why this trace started, "" for the first */
    const char *label;                              /* a harness's: what it is ("main", "auxiliary" ...); else "" */
    const char *template_digest, *tokenizer_digest; /* of its engine; "": not known */
};
struct sluice_message {
    const char *role, *content, *tool;
    int exit_status;
    bool sampled; /* the policy said it; else it was given, or told */
};
struct sluice_breach {
    const char *limit; /* a limit's name: "memory", "disk" ... */
    unsigned count;
};
struct sluice_sandbox { /* what the agent's used; peaks as seen ten times a second */
    uint64_t peak_memory_kib, peak_disk_bytes, peak_inodes;
    unsigned peak_processes; /* threads included */
    double cpu_seconds;
    unsigned commands, timed_out;
    uint64_t output_bytes, cut_bytes; /* cut: of those, what was left out */
    const struct sluice_breach *breaches;
    size_t breach_count;
};
struct sluice_touched {
    const char *what, *path; /* a kind ("shell", "loader" ...); from the root, without its slash */
};
struct sluice_tamper { /* files of the agent's that decide what runs when an evaluator runs (docs/trajectory.md) */
    uint64_t count;
    const struct sluice_touched *files; /* the first of each kind */
    size_t file_count;
};
struct sluice_part { /* of a reward */
    const char *name;
    double value, weight;
};
struct sluice_metric {
    const char *name;
    double value;
};
struct sluice_test {
    const char *name, *status; /* "passed", "failed", "skipped" or "error" */
    const char *message;       /* NULL: none */
    double seconds;            /* -1: not known */
};
struct sluice_tests {
    uint64_t passed, failed, skipped, error; /* of all, listed or not */
    double pass_fraction;                    /* passed of passed, failed and error; -1: there is none of these */
    const struct sluice_test *list;
    size_t list_count;
};
struct sluice_trajectory {
    const char *stream, *rollout, *group, *task;
    uint64_t seq;
    unsigned sample, attempt;
    const char *outcome; /* "ok", "agent", "task", "infra", "cancelled" */
    bool trainable, has_reward;
    double reward, raw_reward; /* raw: the evaluator's, before the task's shaping; the same where there is none */
    const struct sluice_part *parts;
    size_t part_count;
    const struct sluice_metric *metrics; /* the evaluator's; behind them what agent and tools noted by other names */
    size_t metric_count;
    const struct sluice_tests *tests; /* NULL: the evaluator told of none */
    const char *eval_sandbox;         /* "agent": evaluated in the agent's own sandbox; NULL: in none or a fresh one */
    const char *patch;                /* what the agent changed in a repository (eval swe); NULL: not known */
    unsigned group_size, group_ended; /* rollouts; of them ended when it had, itself among them; 0: not known */
    const char *metadata;             /* the task's, one JSON object as text; "": none */
    const char *end;                  /* how the agent ended, as a code (docs/trajectory.md); "": not by itself */
    bool truncated;                   /* a limit on tokens cut it off */
    unsigned run_attempt;             /* how often the run was handed out; 0: not known */
    const char *detail, *init_layer, *engine;
    const char *agent, *logprobs_mode;              /* "" when the agent never ran */
    const char *template_digest, *tokenizer_digest; /* of the engine last asked; traces have their own */
    uint64_t wait_ms, init_ms, run_ms, eval_ms, ended_ms;
    const struct sluice_trace *traces;
    size_t trace_count;
    const struct sluice_message *messages;
    size_t message_count;
    const struct sluice_sandbox *sandbox; /* NULL when the agent had none */
    const struct sluice_tamper *tamper;   /* NULL when it touched nothing of the kind */
};

/*
 * Starts reading a stream from number `from` (1: its beginning; 0: the oldest kept). A stream
 * that does not exist yet is one that has nothing yet. A client reads one stream at a time; a
 * second call changes to another.
 */
int sluice_subscribe(struct sluice_client *client, const char *stream, uint64_t from);
/*
 * The same, with the position kept in a file: when it is there, reading goes on where it says and
 * `from` counts for nothing. sluice_next moves the file past the trajectory it gave before. So
 * this is at least once: after a kill -9 of this process at most the one in hand comes again (after
 * a power failure perhaps some more), and none is passed over. For exactly once keep `seq` in the
 * same checkpoint as what was learned from it, and subscribe from seq + 1.
 * -EINVAL: the file is no cursor of this stream. Negative errno: it cannot be read.
 */
int sluice_follow(struct sluice_client *client, const char *stream, uint64_t from, const char *cursor_path);
/* Moves the file past the last trajectory given, now. Nothing without sluice_follow. */
int sluice_cursor_save(struct sluice_client *client);
/*
 * The next trajectory of the subscribed stream, in order, each once, whatever is lost or restarted
 * on the way. 0; -EAGAIN after timeout_ms without one (-1: no bound); *ret is NULL then. -EINTR: a
 * signal came. -ETIMEDOUT: no broker answered for the client's patience. -EBADMSG: a record that
 * cannot be read, which the next call passes over; -EILSEQ: one whose tokens are not those of
 * sluice_expect, likewise. Another errno: the cursor cannot be written.
 *
 * Two errors stay until sluice_subscribe, and say from where to go on: -ENODATA, the number is no
 * longer kept (it was acknowledged, or kept for as long as the broker's settings say); and
 * -ESTALE, the broker has another ledger than before, an older back-up or an empty one: rollouts that had
 * ended may end again, under the same names and other numbers, and it may know nothing of some that were
 * accepted: submit those again.
 */
int sluice_next(struct sluice_client *client, int64_t timeout_ms, const struct sluice_trajectory **ret);
/*
 * From now on sluice_next gives only trajectories whose every trace was made with this chat template
 * and this tokenizer ("sha256:...", docs/trajectory.md); NULL: any. -EINVAL: no digest.
 */
int sluice_expect(struct sluice_client *client, const char *template_digest, const char *tokenizer_digest);
/*
 * As last heard: the stream's head number and how many accepted rollouts have not ended, those among them
 * that this client has submitted since. Where both have come, nothing is outstanding: pending is 0, and the
 * last number that sluice_next gave is head.
 */
void sluice_stream_state(const struct sluice_client *client, uint64_t *head, uint64_t *pending);
/* As last heard: the oldest number kept, from where reading may go on after -ENODATA or -ESTALE. */
uint64_t sluice_stream_first(const struct sluice_client *client);
/* Trajectories up to seq may be forgotten by the broker. */
int sluice_ack(struct sluice_client *client, const char *stream, uint64_t seq);

/* What rollout.list takes; NULL and 0: all. */
struct sluice_filter {
    bool ended; /* those that have ended, of `stream` or `group`; else those that have not */
    const char *stream, *group, *stage, *state, *outcome, *image, *engine;
    uint64_t age_ms; /* ended, or came to where they are, at least so long ago */
    unsigned limit;  /* 1 to 1000; 0: 100 */
};
/* Rollouts, as the JSON that docs/operations.md describes; good until the next call. */
int sluice_list(struct sluice_client *client, const struct sluice_filter *filter, const char **json);

/* One rollout: its trajectory, or *ret NULL and its state in words in *state. */
int sluice_get(struct sluice_client *client, const char *rollout, const struct sluice_trajectory **ret,
               const char **state);

/*
 * Watches a rollout while it works (docs/live.md), from its beginning; at most 256 at once. Errors as those of
 * sluice_get. It goes on until the rollout has ended, or sluice_unwatch; watching one twice is watching it once.
 */
int sluice_watch(struct sluice_client *client, const char *rollout);
/*
 * What is heard next of any rollout that is watched: one JSON object, a batch of docs/live.md, good until the next
 * call. Nothing is lost by not calling this for a while, but for what is dropped and then told anew; after 15 s nothing
 * more is sent until the next call. The last batch of a rollout has the event "ended".
 * -EAGAIN: none came within timeout_ms (-1: no bound); -ENOENT: nothing is watched any more; -EINTR: a signal came;
 * -ETIMEDOUT: no broker answered for the client's patience.
 */
int sluice_watch_next(struct sluice_client *client, int64_t timeout_ms, const char **json);
void sluice_unwatch(struct sluice_client *client, const char *rollout);

/*
 * Exactly one of the three is not NULL. *count: rollouts stopped. A group or rollout that is not
 * known is 0 stopped, and remembered for a while: should its submit still come, it ends cancelled.
 */
int sluice_cancel(struct sluice_client *client, const char *rollout, const char *group, const char *stream,
                  uint64_t *count);
/* Also takes back one that drains. runs_max: at most so many rollouts there at a time; 0: no limit,
 * or what it was. */
int sluice_engine_add(struct sluice_client *client, const char *url);
int sluice_engine_add_with(struct sluice_client *client, const char *url, uint64_t runs_max);
/* The same as an engine of this policy; NULL: of the usual one, or of the one that it was of. */
int sluice_engine_add_to(struct sluice_client *client, const char *url, uint64_t runs_max, const char *policy);
/*
 * The same. *moved_from: the policy whose engine it was until now, where that is another; good until the next call.
 * NULL: it was none, or of the same.
 */
int sluice_engine_move(struct sluice_client *client, const char *url, uint64_t runs_max, const char *policy,
                       const char **moved_from);
int sluice_engine_remove(struct sluice_client *client, const char *url);
/* No more rollouts are placed there. *count, if wanted: rollouts that are there; ask again to wait. */
int sluice_engine_drain(struct sluice_client *client, const char *url, uint64_t *count);
/*
 * The engine (NULL: each that is registered) serves this version of the policy from now on: turns
 * that it samples are marked with it. For a trainer that has updated the weights; pause it meanwhile.
 */
int sluice_policy_set(struct sluice_client *client, const char *version, const char *engine);
/*
 * The engine (NULL: each that is registered) is called no more. calls: what becomes of calls in flight,
 * "finish", "abort" (they are made again after the pause) or "hold" (they stay open: for engines that
 * stop and go on by themselves). 0 once nothing is in flight, but for held ones, and every worker
 * knows. -ETIMEDOUT: it was not so within wait_ms, and the pause was taken back. It ends by itself after bound_ms
 * (1,000 to 3,600,000), whatever becomes of this process or the broker. Rollouts lose no time by it.
 */
int sluice_policy_pause(struct sluice_client *client, const char *calls, const char *engine, uint64_t bound_ms,
                        int64_t wait_ms);
/* *count, if wanted: engines that were paused; 0: none was, or its time was over. */
int sluice_policy_resume(struct sluice_client *client, const char *engine, uint64_t *count);
/*
 * A sampler (docs/sampler.md): a rule attached to a stream, by which the broker makes batches of groups. Zeroes and
 * NULL are the defaults; `stream`, `trainer` and `groups` must be said.
 */
struct sluice_sampler {
    const char *stream, *trainer;
    uint64_t groups;              /* of a batch */
    const char *filter, *surplus; /* "mixed" or "none"; "carry" or "cancel" */
    uint64_t window, over_sample; /* over_sample: in thousandths */
    uint64_t early;
    bool has_staleness, has_ahead, has_replace_max;
    uint64_t staleness, ahead, replace_max; /* each if so */
};
struct sluice_sampler_state {
    uint64_t batch;     /* the current one, 0 before the first */
    uint64_t submitted; /* groups that were ever submitted to it */
    const char *json;   /* all of it; good until the next call */
};
/* Attaches it, changes its rule, or takes it over from another trainer. */
int sluice_sampler_open(struct sluice_client *client, const struct sluice_sampler *sampler,
                        struct sluice_sampler_state *ret);
int sluice_sampler_get(struct sluice_client *client, const char *stream, struct sluice_sampler_state *ret);
/*
 * The current batch again, or the next one, with which the current one is done. *json: the batch, as docs/sampler.md
 * describes it; NULL: it is not full within wait_ms, or the pool of groups ran empty, and *why says why. It waits for
 * at most half of the client's timeout: ask again. Both are good until the next call.
 */
int sluice_sampler_next(struct sluice_client *client, const char *stream, const char *trainer, uint64_t batch,
                        uint64_t wait_ms, const char **json, const char **why);
/* Groups that it holds are cancelled, with `cancel` those at work too. *count, if wanted: rollouts cancelled. */
int sluice_sampler_close(struct sluice_client *client, const char *stream, bool cancel, uint64_t *count);
/*
 * Where the loop of a rollout speaks to it (agent.kind session, docs/sessions.md): only the session of a later attempt
 * than `after`; 0: any. It waits for at most wait_ms, and half of the client's timeout, for one to be open: ask again.
 * -ENODATA: it has no session, or has ended. Texts are good until the next call.
 */
struct sluice_session {
    const char *url; /* a secret: who knows it samples as this rollout; NULL: it is not open yet, ... */
    const char *why; /* ... and waits for that; "": its worker is opening it */
    uint64_t attempt;
};
int sluice_session_get(struct sluice_client *client, const char *rollout, uint64_t after, uint64_t wait_ms,
                       struct sluice_session *ret);
/*
 * Exactly one of the two is not NULL: the worker, or every worker of the host, takes no new job,
 * finishes or gives back what it has, and ends. grace_s: jobs that run get so many seconds, then
 * they are given back; -1: the worker's own --grace. *count: workers told. -ENOENT no such one.
 */
int sluice_drain(struct sluice_client *client, const char *worker, const char *host, int64_t grace_s, uint64_t *count);
/*
 * Copies the broker's ledger, while it runs, to backups/<name>.db in its data directory. 0 when
 * the copy is on its disk, *size_bytes large; -EIO: it could not be made. It is asked for once, so
 * set a timeout that is long enough: after -ETIMEDOUT it may be there or not.
 */
int sluice_backup(struct sluice_client *client, const char *name, uint64_t *size_bytes);
/* The broker's status, one JSON object. */
int sluice_status(struct sluice_client *client, const char **json);
/*
 * The service's metrics as Prometheus reads them (docs/metrics.md): its text format 0.0.4, or OpenMetrics 1.0. They
 * are of all clients together, so that an admin's key is needed; -EACCES with another.
 */
int sluice_metrics(struct sluice_client *client, bool openmetrics, const char **text);

#ifdef __cplusplus
}
#endif

#endif
