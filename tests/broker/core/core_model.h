/*
 * core_model.h - the world around the core, simulated: workers that die, hang, lose
 * messages and answer late or twice; engines and images that are bad for a while; a
 * ledger (core_model_ledger.h) that remembers what was persisted and objects to what
 * must not be; a broker that crashes before or after its commit; clocks that jump.
 * Everything follows from the seed.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_MODEL_H
#define SLUICE_TESTS_BROKER_CORE_CORE_MODEL_H

#include "tests/broker/core/core_model_ledger.h"

/* ---- workers ----------------------------------------------------------------------- */

static inline struct sim_worker *find_worker(struct model *model, struct slice id)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        if (model->workers[i].alive && slice_is(id, model->workers[i].id))
            return &model->workers[i];
    return NULL;
}

static inline void drop_held(struct sim_worker *worker, struct slice job, uint64_t token)
{
    for (size_t i = 0; i < worker->count;)
        if (slice_is(job, worker->held[i].job) && (!token || token == worker->held[i].token))
            worker->held[i] = worker->held[--worker->count];
        else
            i++;
}

static inline const char *pick_outcome(struct model *model)
{
    static const char *const bad[] = {"agent", "task", "infra", "infra", "cancelled"};
    return prng(model, 4) ? bad[roll(model, 5)] : "ok";
}

/* The name of its key: a key has several workers. */
static inline const char *key_of(const char *id)
{
    static const char *const keys[] = {"k0", "k1", "k2"};
    return keys[atoi(id + 1) % 3];
}

static inline int digit_of(struct slice name) { return name.len ? name.data[name.len - 1] - '0' : -1; }

/* How the job ends: by its own luck, or by what its engine or its image is. */
static inline void decide(struct model *model, struct held *held)
{
    bool bad_engine = held->engine >= 0 && model->bad_engine_ms[held->engine] > model->now_ms;
    bool bad_image = held->image >= 0 && model->bad_image_ms[held->image] > model->now_ms;
    held->outcome = bad_engine ? "infra" : bad_image ? roll(model, 4) ? "infra" : "task" : pick_outcome(model);
    held->fault = bad_engine       ? "engine"
                  : bad_image      ? "image"
                  : prng(model, 9) ? "stale"
                  : prng(model, 5) ? "handler"
                                   : NULL;
    if (strncmp(held->job, "eval:", 5) != 0)
        return;
    const struct row_rollout *rollout = find_rollout(model, slice_from_str(held->job + 5));
    if (rollout->mark == held->mark && rollout->gone_ms <= model->now_ms) {
        held->outcome = "infra";
        held->fault = "store";
    }
}

static inline void send_result(struct model *model, struct sim_worker *worker, struct held *held)
{
    held->resend_ms = model->now_ms + 2000;
    for (int copies = prng(model, 10) ? 0 : prng(model, 10) ? 2 : 1; copies > 0; copies--) {
        if (model->wire_count == WIRE_MAX)
            return;
        struct letter *letter = &model->wire[model->wire_count++];
        letter->due_ms = model->now_ms + (prng(model, 8) ? roll(model, 30000) : 0);
        letter->due_ms = letter->due_ms < worker->cut_ms ? worker->cut_ms : letter->due_ms;
        memcpy(letter->worker, worker->id, sizeof(worker->id));
        memcpy(letter->job, held->job, sizeof(held->job));
        letter->token = held->token;
        letter->mark = held->mark;
        letter->outcome = held->outcome;
        letter->fault = held->fault;
        letter->serves = held->serves;
    }
}

/* Those of its offers that are good, sorted, without versions. */
static inline struct slice said_names(const struct sim_worker *worker, char *ret, size_t size)
{
    static const char *const good[] = {"agent:a", "agent:session", "evaluator:e", "evaluator:f", "tool:t", "tool:u"};
    ret[0] = '\0';
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        const bool is_of_stage = good[i][0] == 'e' || worker->stage[0] == 'r';
        const size_t len = strlen(ret);
        if (worker->said && is_of_stage && strstr(worker->said, good[i]))
            snprintf(ret + len, size - len, "%s%s", len ? " " : "", good[i]);
    }
    return slice_from_str(ret);
}

static inline void take_job(struct model *model, struct sim_worker *worker, const struct effect *effect)
{
    struct row_group *group = find_group(model, effect->group);
    struct core_task task = task_of(slice_from_str(group->id));
    assert_true(slice_is(slice_from_str(stage_wire(effect->stage)), worker->stage));
    assert_true(effect->stage == STAGE_INIT || group->init_done);
    if (effect->stage != STAGE_INIT) {
        assert_false(find_rollout(model, effect->rollout)->ended);
        assert_false(find_rollout(model, effect->rollout)->doomed);
        assert_int_equal(find_rollout(model, effect->rollout)->run_done, effect->stage == STAGE_EVAL);
        assert_true(effect->stage != STAGE_RUN || !task.needs_engine || effect->engine.len);
        assert_int_equal(effect->stage == STAGE_EVAL && effect->engine.len,
                         effect->stage == STAGE_EVAL && task.judge.len);
        model->judged += effect->stage == STAGE_EVAL && task.judge.len;
        assert_false(effect->stage == STAGE_EVAL && is_evaluated_there(effect->group)); /* once is all */
    }
    if (task.needs[effect->stage].len) { /* it said so */
        char names[64];
        assert_true(names_are_among(task.needs[effect->stage], said_names(worker, names, sizeof(names))));
        model->offered++;
    }
    if (worker->count == HELD_MAX)
        return;
    struct held *held = &worker->held[worker->count++];
    *held = (struct held){.token = effect->token,
                          .engine = digit_of(effect->engine),
                          .image = effect->stage == STAGE_INIT ? digit_of(task.image) : -1,
                          .done_ms = model->now_ms + roll(model, 3000) + (prng(model, 50) ? 100000 : 0)};
    if (held->engine >= 0 && !prng(model, 20))
        held->serves = model->serves[held->engine];
    put_text(held->job, sizeof(held->job), effect->job);
    held->mark = effect->stage == STAGE_EVAL  ? find_rollout(model, effect->rollout)->mark
                 : effect->stage == STAGE_RUN ? ++model->marks
                                              : 0;
}

/* It goes, or stays where it is. */
static inline void migrate_held(struct model *model, struct sim_worker *worker, const struct msg_job_migrate *in)
{
    for (size_t i = 0; i < worker->count; i++) {
        struct held *held = &worker->held[i];
        if (!slice_is(in->job, held->job) || in->token != held->token)
            continue;
        held->is_migrated = true;
        int to = digit_of(in->engine);
        held->engine = roll(model, 3) && model->serves[to] == held->serves ? to : held->engine;
    }
}

static inline void hear_hello(const struct model *model, struct sim_worker *worker, uint64_t epoch)
{
    if (epoch == worker->epoch)
        return;
    worker->heard = 0;
    worker->epoch = epoch;
    for (size_t i = 0; i < worker->count; i++)
        worker->held[i].resend_ms = model->now_ms;
}

static inline void hear(struct model *model, struct sim_worker *worker, struct slice bytes)
{
    union any_message in;
    enum message_id id;
    assert_true(message_peek(bytes, &id, NULL));
    assert_true(message_decode(id, bytes, &in, NULL));
    if (id == MSG_job_cancel) {
        drop_held(worker, in.job_cancel.job, in.job_cancel.token);
    } else if (id == MSG_result_ack) {
        drop_held(worker, in.result_ack.job, in.result_ack.token);
    } else if (id == MSG_lane_drain) {
        worker->draining = worker->told = true;
    } else if (id == MSG_lane_engine) {
        worker->heard = in.lane_engine.state > worker->heard ? in.lane_engine.state : worker->heard;
    } else if (id == MSG_job_migrate) {
        migrate_held(model, worker, &in.job_migrate);
    } else if (id == MSG_engine_probe) {
        worker->probes = (unsigned)digit_of(in.engine_probe.url);
        worker->is_probed = true;
    } else {
        assert_int_equal(id, MSG_lane_hello);
        hear_hello(model, worker, in.lane_hello.epoch);
    }
}

/* Each request is answered once, and a URL is of a dispatch that was. */
static inline void hear_session(struct model *model, struct slice bytes, enum message_id id)
{
    struct msg_session_state state;
    struct msg_refused refused;
    if (id == MSG_session_state) {
        assert_true(message_decode(id, bytes, &state, NULL));
        assert_true(!state.has_url || slice_is(slice_of(state.url.data, 11), "http://w/s/"));
        assert_true(!state.has_url || !state.has_why);
        model->session_urls += state.has_url;
        model->session_told++;
    } else if (id == MSG_refused) {
        assert_true(message_decode(id, bytes, &refused, NULL));
        model->session_told += slice_is(refused.request, "session.get");
    }
}

static inline void deliver(struct model *model, const struct effect *effect)
{
    if (effect->kind == HEALTH_CHANGED || effect->kind == PUBLISH_TRAJECTORY)
        return; /* for the log, for the feed */
    struct sim_worker *worker = find_worker(model, effect->worker);
    bool is_lost = prng(model, 25);
    if (effect->kind == SEND_CLIENT) {
        enum message_id id;
        struct msg_group_accepted in;
        assert_true(message_peek(effect->bytes, &id, NULL));
        if (id == MSG_sampler_batch) {
            struct msg_sampler_batch batch;
            assert_true(message_decode(id, effect->bytes, &batch, NULL));
            hear_batch(&model->samplers[stream_number(batch.stream)], effect->bytes);
            model->batches++;
        }
        hear_session(model, effect->bytes, id);
        if (id != MSG_group_accepted)
            return;
        assert_true(message_decode(id, effect->bytes, &in, NULL));
        assert_non_null(find_group(model, in.group)); /* accepted means on disk */
        find_group(model, in.group)->accepted = true;
    } else if (!worker || is_lost) {
        return;
    } else if (effect->kind == LANE_OPEN || effect->kind == LANE_CLOSE) {
        worker->lane = effect->kind == LANE_OPEN;
    } else if (effect->kind == LANE_JOB && worker->lane) {
        take_job(model, worker, effect);
    } else if (effect->kind == LANE_SEND && worker->lane) {
        hear(model, worker, effect->bytes);
    }
}

static inline void send_beat(struct model *model, struct sim_worker *worker)
{
    char lane[64];
    struct buffer packed = {0};
    worker->beat_ms = model->now_ms + 1000;
    worker->progress += !worker->hung;
    if (prng(model, 10) || worker->cut_ms > model->now_ms)
        return;
    for (size_t i = 0; i < worker->count; i++)
        assert_true(jobs_append(&packed, slice_from_str(worker->held[i].job), worker->held[i].token));
    worker->said = worker->offers;
    /* What opens a lane may be lost here as nothing is in earnest: a new address mends it. */
    snprintf(lane, sizeof(lane), "tcp://h:%llu", (unsigned long long)(worker->lane ? 1 : worker->progress + 2));
    struct msg_worker_beat in = {.worker = slice_from_str(worker->id),
                                 .stage = slice_from_str(worker->stage),
                                 .slots = worker->slots,
                                 .lane = slice_from_str(lane),
                                 .host = slice_from_str("h"),
                                 .progress = worker->progress,
                                 .draining = worker->draining,
                                 .epoch = worker->epoch,
                                 .engines = worker->heard,
                                 .has_engines = true,
                                 .offers = slice_from_str(worker->offers),
                                 .has_offers = worker->offers,
                                 .jobs = {buffer_peek(&packed), (uint32_t)worker->count}};
    core_handle(model->core, model->now_ms, wall_of(model),
                &(struct caller){.name = slice_from_str(key_of(worker->id))}, MSG_worker_beat, &in, NULL, 0);
    buffer_finish(&packed);
}

/* What it holds on the engines, or what it says that it does. */
static inline void send_load(struct model *model, struct sim_worker *worker)
{
    char url[16];
    uint64_t runs = 0;
    bool knows = model->calm || roll(model, 16) == 0;
    unsigned engine = worker->is_probed ? worker->probes : roll(model, ENGINES);
    for (size_t i = 0; i < worker->count; i++)
        runs += worker->held[i].engine == (int)engine;
    snprintf(url, sizeof(url), "http://e%u", engine);
    struct msg_engine_load in = {.worker = slice_from_str(worker->id),
                                 .url = slice_from_str(url),
                                 .runs = runs,
                                 .tokens = runs * roll(model, 20000),
                                 .calls = roll(model, 10),
                                 .has_cache_permille = prng(model, 3),
                                 .cache_permille = prng(model, 2) ? 1000 : roll(model, 1001),
                                 .has_answers = worker->is_probed,
                                 .answers = !prng(model, 5),
                                 .has_template_digest = knows};
    if (knows)
        in.tokenizer_digest = in.template_digest = slice_of(&model->serves[engine], 1);
    worker->is_probed = false;
    core_handle(model->core, model->now_ms, wall_of(model),
                &(struct caller){.name = slice_from_str(key_of(worker->id))}, MSG_engine_load, &in, NULL, 0);
}

static inline void send_migrations(struct model *model, struct sim_worker *worker)
{
    for (size_t i = 0; i < worker->count; i++) {
        struct held *held = &worker->held[i];
        if (held->engine >= 0 && prng(model, 20)) { /* as if it had been asked long ago */
            held->is_migrated = true;
            held->engine = (int)roll(model, ENGINES);
        }
        if (!held->is_migrated)
            continue;
        model->migrations++;
        char url[16];
        snprintf(url, sizeof(url), "http://e%d", held->engine);
        struct msg_job_migrated in = {.worker = slice_from_str(worker->id),
                                      .job = slice_from_str(held->job),
                                      .token = held->token,
                                      .engine = slice_from_str(url)};
        held->is_migrated = false;
        core_handle(model->core, model->now_ms, wall_of(model),
                    &(struct caller){.name = slice_from_str(key_of(worker->id))}, MSG_job_migrated, &in, NULL, 0);
    }
}

/* Of what it holds, and now and then of what it does not. */
static inline void send_sessions(struct model *model, struct sim_worker *worker)
{
    char url[64];
    for (size_t i = 0; i < worker->count; i++) {
        const struct held *held = &worker->held[i];
        const uint64_t token = held->token + (prng(model, 20) ? 1 : 0);
        snprintf(url, sizeof(url), "http://w/s/%llu", (unsigned long long)token);
        struct msg_session_open in = {.worker = slice_from_str(worker->id),
                                      .job = slice_from_str(held->job),
                                      .token = token,
                                      .url = slice_from_str(url)};
        core_handle(model->core, model->now_ms, wall_of(model),
                    &(struct caller){.name = slice_from_str(key_of(worker->id))}, MSG_session_open, &in, NULL, 0);
    }
}

static inline void work(struct model *model, struct sim_worker *worker)
{
    if (!worker->alive)
        return;
    for (size_t i = 0; i < worker->count && !worker->hung; i++) {
        struct held *held = &worker->held[i];
        if (!held->outcome && model->now_ms >= held->done_ms)
            decide(model, held);
        if (held->outcome && model->now_ms >= held->resend_ms)
            send_result(model, worker, held);
    }
    if (worker->told && !worker->count)
        worker->alive = false;
    else if (model->now_ms >= worker->beat_ms) {
        send_load(model, worker);
        send_migrations(model, worker);
        send_beat(model, worker);
        send_sessions(model, worker);
    }
}

#endif
