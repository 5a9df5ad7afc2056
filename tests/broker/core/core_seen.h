/*
 * core_seen.h - one effect of the core as scenarios look at it: what it says, and what the message in it says, which
 * must obey the schema.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_SEEN_H
#define SLUICE_TESTS_BROKER_CORE_CORE_SEEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "broker/core/core.h"

/* One effect, in strings and numbers that stay. */
struct seen {
    enum effect_kind kind;
    enum message_id message; /* SEND_CLIENT, SEND_EVENTS, LANE_SEND, PUBLISH_HEAD, SEND_RANGE */
    char client[64], worker[160], endpoint[256], job[160], group[128], rollout[160], stream[80];
    char engine[280], detail[512], record[64], reason[64], field[64], text[1100], tool[80];
    char state[32], stage[16], owner[80];
    uint64_t priority, tag, seq, limit, token, attempt, ms, count, samples, first, head, pending, retry_ms;
    bool known, present, reads_record, bundles, shares_tasks;
    struct core_end end;
    char failures_job[160], history[1100]; /* PERSIST_FAILURES, and its counts */
    struct core_failures failures;
    char lease_job[160], lease_worker[160], lease_key[80]; /* PERSIST_LEASE */
    uint64_t row_runs_max;                                 /* PERSIST_ENGINE */
    bool row_draining;
    char version[32], calls[16], credentials[280]; /* PERSIST_ENGINE, lane.engine */
    uint64_t paused_until_ms;
    uint64_t lease_ms, accepted_ms;
    char json[6144]; /* sampler.state, sampler.batch, PERSIST_BATCH */
    uint64_t ready, live, held, submitted, batch;
    struct core_sampler sampler; /* PERSIST_SAMPLER */
    struct core_sampled sampled; /* PERSIST_SAMPLED */
    char end_detail[2048], end_engine[280], end_layer[96], end_rollout[160];
};

static inline void world_copy(char *to, size_t size, struct slice from)
{
    assert_true(from.len < size);
    if (from.len)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

#define COPY(field, from) world_copy(seen->field, sizeof(seen->field), (from))

static inline void world_read_client(struct seen *seen, struct slice bytes)
{
    union {
        struct msg_refused refused;
        struct msg_group_accepted accepted;
        struct msg_done done;
        struct msg_rollout_state state;
        struct msg_stream_head head;
        struct msg_status status;
        struct msg_metrics metrics;
        struct msg_sampler_state sampler;
        struct msg_sampler_batch batch;
        struct msg_sampler_waits waits;
        struct msg_session_state session;
        struct msg_rollout_events events;
    } in;
    struct refusal no;
    assert_true(message_peek(bytes, &seen->message, &no));
    assert_true(message_decode(seen->message, bytes, &in, &no));
    switch (seen->message) {
    case MSG_refused:
        seen->tag = in.refused.tag;
        seen->retry_ms = in.refused.has_retry_after_ms ? in.refused.retry_after_ms : 0;
        COPY(reason, in.refused.reason);
        COPY(field, in.refused.field);
        COPY(text, in.refused.text);
        break;
    case MSG_group_accepted:
        seen->tag = in.accepted.tag;
        seen->samples = in.accepted.samples;
        seen->known = in.accepted.known;
        COPY(group, in.accepted.group);
        COPY(text, in.accepted.warning);
        break;
    case MSG_done:
        seen->tag = in.done.tag;
        seen->count = in.done.count;
        COPY(text, in.done.moved_from);
        break;
    case MSG_rollout_state:
        seen->attempt = in.state.attempt;
        COPY(state, in.state.state);
        COPY(stage, in.state.stage);
        COPY(worker, in.state.worker);
        COPY(rollout, in.state.rollout);
        COPY(tool, in.state.tool);
        COPY(text, in.state.why);
        seen->count = in.state.turn;
        break;
    case MSG_stream_head:
        seen->tag = in.head.tag;
        seen->first = in.head.first;
        seen->head = in.head.head;
        seen->pending = in.head.pending;
        COPY(stream, in.head.stream);
        break;
    case MSG_sampler_state:
        seen->tag = in.sampler.tag;
        seen->batch = in.sampler.batch;
        seen->submitted = in.sampler.submitted;
        COPY(json, in.sampler.json);
        break;
    case MSG_sampler_batch:
        seen->tag = in.batch.tag;
        seen->batch = in.batch.batch;
        COPY(json, in.batch.json);
        break;
    case MSG_sampler_waits:
        seen->tag = in.waits.tag;
        seen->batch = in.waits.batch;
        seen->ready = in.waits.ready;
        seen->live = in.waits.live;
        seen->held = in.waits.held;
        seen->submitted = in.waits.submitted;
        COPY(text, in.waits.why);
        break;
    case MSG_session_state:
        seen->tag = in.session.tag;
        seen->attempt = in.session.attempt;
        COPY(rollout, in.session.rollout);
        COPY(endpoint, in.session.url);
        COPY(text, in.session.why);
        break;
    case MSG_metrics:
        seen->tag = in.metrics.tag;
        in.metrics.text.len = in.metrics.text.len < sizeof(seen->text) ? in.metrics.text.len : sizeof(seen->text) - 1;
        COPY(text, in.metrics.text);
        break;
    case MSG_rollout_events:
        seen->tag = in.events.tag;
        seen->seq = in.events.number;
        seen->count = in.events.count;
        seen->attempt = in.events.attempt;
        COPY(rollout, in.events.rollout);
        COPY(stage, in.events.stage);
        COPY(text, slice_of(in.events.events.data, in.events.events.len < 1000 ? in.events.events.len : 1000));
        break;
    default: assert_int_equal(seen->message, MSG_status);
    }
}

static inline void world_read_lane(struct seen *seen, struct slice bytes)
{
    union any_message in;
    struct refusal no;
    assert_true(message_peek(bytes, &seen->message, &no));
    assert_true(message_decode(seen->message, bytes, &in, &no));
    if (seen->message == MSG_job_cancel) {
        COPY(job, in.job_cancel.job);
        seen->token = in.job_cancel.token;
    } else if (seen->message == MSG_result_ack) {
        COPY(job, in.result_ack.job);
        seen->token = in.result_ack.token;
    } else if (seen->message == MSG_lane_drain) {
        seen->count = in.lane_drain.has_grace_s ? in.lane_drain.grace_s : 0;
    } else if (seen->message == MSG_lane_engine) {
        COPY(engine, in.lane_engine.url);
        COPY(version, in.lane_engine.version);
        COPY(calls, in.lane_engine.calls);
        COPY(credentials, in.lane_engine.credentials);
        seen->token = in.lane_engine.state;
        seen->count = in.lane_engine.number;
        seen->ms = in.lane_engine.resume_ms;
    } else if (seen->message == MSG_job_migrate) {
        COPY(job, in.job_migrate.job);
        COPY(engine, in.job_migrate.engine);
        seen->token = in.job_migrate.token;
    } else if (seen->message == MSG_lane_watch) {
        COPY(job, in.lane_watch.job);
        seen->token = in.lane_watch.token;
        seen->ms = in.lane_watch.watch_ms;
        seen->known = in.lane_watch.anew;
    } else if (seen->message == MSG_engine_probe) {
        COPY(engine, in.engine_probe.url);
    } else {
        assert_int_equal(seen->message, MSG_lane_hello);
        seen->count = in.lane_hello.epoch;
        seen->bundles = in.lane_hello.has_bundles && in.lane_hello.bundles;
    }
}

static inline void world_read_group(struct seen *seen, const struct effect *effect)
{
    seen->samples = effect->samples;
    seen->priority = effect->priority;
    seen->lease_ms = effect->lease_ms;
    seen->accepted_ms = effect->accepted_ms;
    COPY(owner, effect->owner);
}

static inline void world_read_end(struct seen *seen, const struct effect *effect)
{
    seen->end = effect->end;
    COPY(end_detail, effect->end.detail);
    COPY(end_engine, effect->end.engine);
    COPY(end_layer, effect->end.init_layer);
    COPY(end_rollout, effect->end.rollout);
}

static inline void world_read_failures(struct seen *seen, const struct effect *effect)
{
    seen->failures = effect->failures;
    COPY(failures_job, effect->failures.job);
    COPY(history, effect->failures.history);
}

static inline void world_read_lease(struct seen *seen, const struct effect *effect)
{
    COPY(lease_job, effect->lease.job);
    COPY(lease_worker, effect->lease.worker);
    COPY(lease_key, effect->lease.key);
}

static inline void world_read_row(struct seen *seen, const struct effect *effect)
{
    seen->row_runs_max = effect->row.runs_max;
    seen->row_draining = effect->row.draining;
    seen->paused_until_ms = effect->row.paused_until_ms;
    COPY(version, effect->row.version);
    COPY(calls, effect->row.calls);
    COPY(credentials, effect->row.credentials);
}

/* Its name as `job`, its owner as `client`, its time in `end`. */
static inline void world_read_early_cancel(struct seen *seen, const struct effect *effect)
{
    COPY(job, effect->early_cancel.name);
    COPY(client, effect->early_cancel.owner);
    seen->end.clock_ms = effect->early_cancel.clock_ms;
}

static inline void world_read_sent(struct seen *seen, const struct effect *effect)
{
    seen->tag = effect->tag;
    seen->limit = effect->limit;
    seen->attempt = effect->attempt;
    COPY(client, effect->client);
    COPY(worker, effect->worker);
    COPY(endpoint, effect->endpoint);
    if (effect->kind == LANE_SEND)
        world_read_lane(seen, effect->bytes);
    else if (effect->bytes.len)
        world_read_client(seen, effect->bytes);
}

static inline void world_read_effect(struct seen *seen, const struct effect *effect)
{
    *seen = (struct seen){.kind = effect->kind,
                          .message = MESSAGE_COUNT,
                          .seq = effect->seq,
                          .token = effect->token,
                          .present = effect->present,
                          .reads_record = effect->reads_record,
                          .shares_tasks = effect->shares_tasks};
    COPY(job, effect->job);
    COPY(group, effect->group);
    COPY(rollout, effect->rollout);
    COPY(stream, effect->stream);
    COPY(engine, effect->engine);
    if (effect->kind != PERSIST_BATCH)
        COPY(detail, effect->detail);
    COPY(record, effect->record);
    switch (effect->kind) {
    case PERSIST_GROUP: world_read_group(seen, effect); break;
    case PERSIST_INIT:
    case PERSIST_RUN: seen->ms = effect->ms; break;
    case PERSIST_END:
    case PUBLISH_TRAJECTORY: world_read_end(seen, effect); break;
    case PERSIST_FAILURES: world_read_failures(seen, effect); break;
    case PERSIST_LEASE: world_read_lease(seen, effect); break;
    case PERSIST_ENGINE: world_read_row(seen, effect); break;
    case PERSIST_EARLY_CANCEL: world_read_early_cancel(seen, effect); break;
    case PERSIST_BATCH: COPY(json, effect->detail); break;
    case PERSIST_SAMPLER:
        if (effect->present)
            seen->sampler = *effect->sampler;
        break;
    case PERSIST_SAMPLED:
        if (effect->present)
            seen->sampled = *effect->sampled;
        break;
    case HEALTH_CHANGED: COPY(state, slice_from_str(effect->health.news)); break;
    default:
        if (effect->kind > PERSIST_EPOCH)
            world_read_sent(seen, effect);
    }
}

#endif
