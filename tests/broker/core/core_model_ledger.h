/*
 * core_model_ledger.h - the simulated world's state and its ledger: it remembers what
 * was persisted, objects to what must not be, and tells a new broker all of it.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_MODEL_LEDGER_H
#define SLUICE_TESTS_BROKER_CORE_CORE_MODEL_LEDGER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/core/core.h"
#include "broker/core/needs/offers.h"
#include "tests/broker/core/core_model_sampler.h"

enum {
    GROUPS_MAX = 400,
    SAMPLES = 4,
    WORKERS_MAX = 24,
    HELD_MAX = 256,
    WIRE_MAX = 4096,
    STREAMS = 4,
    ENGINES = 2,
    IMAGES = 3,
    EARLY_CANCELS = 2000,
    POLICIES = 2
};

struct held {
    char job[64];
    uint64_t token;
    int64_t done_ms, resend_ms;
    const char *outcome; /* NULL while at work */
    const char *fault;   /* or NULL */
    int engine, image;   /* number, -1: none */
    unsigned mark;       /* run: what it will leave; eval: what it was given of a run */
    char serves;      /* run: what its engine served when it began, 'a' or 'b'; 0: none, or the worker is an old one */
    bool is_migrated; /* the broker asked for it, and has not heard of it yet */
};

struct sim_worker {
    char id[32];
    const char *stage;
    unsigned slots;
    bool alive, lane, draining, hung, told; /* told: to drain, and to end then */
    int64_t beat_ms, cut_ms; /* until then nothing of it reaches the broker; its results come after that */
    uint64_t epoch, progress;
    struct held held[HELD_MAX];
    size_t count;
    uint64_t heard; /* the newest lane.engine */
    bool is_probed; /* at an engine, as a engine.probe said */
    unsigned probes;
    const char *offers, *said; /* what its handlers offer; what its last beat that came said of it */
};

/* A result under way to the broker. */
struct letter {
    int64_t due_ms;
    char worker[32], job[64];
    uint64_t token;
    unsigned mark;
    const char *outcome, *fault;
    char serves;
};

/* What went wrong with a job, as the ledger knows it. */
struct row_failures {
    char job[48], history[1100];
    uint64_t attempt, infras, faults, blames, deaths, missing, fenced_up_to;
};

/* Who may speak for a job, as the ledger knows it. */
struct row_lease {
    char job[48], worker[32], key[16];
    uint64_t token;
};

struct row_rollout {
    bool run_done, ended, doomed; /* doomed: cancelled before its submit */
    bool run_again;
    unsigned mark;   /* of the run that is done: no other's reward may be its */
    int64_t gone_ms; /* from then on what that run left cannot be read */
    struct row_lease lease;
    enum outcome run_outcome;
    uint64_t seq, ended_ms;
    struct row_failures failures;
};

struct row_group {
    char id[32], stream[16];
    uint64_t samples, priority, lease_ms, accepted_ms;
    bool accepted, init_done;
    char serves;                  /* what its runs were sampled with; 0: none is recorded */
    struct row_failures failures; /* of its init */
    struct row_lease lease;
    struct row_rollout rollouts[SAMPLES];
};

struct row_early_cancel {
    char name[48];
    uint64_t wall_ms;
};

struct model {
    struct core *core;
    struct core_settings settings;
    uint64_t epoch, names;
    uint32_t random;
    int64_t now_ms;
    bool calm; /* nothing is lost any more */
    struct row_group groups[GROUPS_MAX];
    size_t group_count;
    uint64_t first[STREAMS], head[STREAMS];
    bool engines[ENGINES], draining[ENGINES];
    char versions[ENGINES][32], calls[ENGINES][20];
    uint64_t paused_until_ms[ENGINES], version_numbers[ENGINES], highest_version;
    uint64_t runs_max[ENGINES];
    char serves[ENGINES];                   /* in earnest: which tokenizer and template */
    char told[ENGINES], policies[POLICIES]; /* as the ledger has it; 0: nothing */
    unsigned policy_of[ENGINES];
    struct sim_worker workers[WORKERS_MAX];
    struct letter wire[WIRE_MAX];
    size_t wire_count;
    struct row_sampler samplers[STREAMS];
    uint64_t sampled, batches, replaced, closed; /* groups, told ones, rollouts, samplers */
    struct row_early_cancel early_cancels[EARLY_CANCELS];
    size_t early_cancel_count;
    int64_t bad_engine_ms[ENGINES], bad_image_ms[IMAGES]; /* until then they fail */
    int64_t skew_ms;                                      /* of the wall clock */
    uint64_t ends, restarts, deaths, failures;
    uint64_t foreign, drained, migrations, mixed;
    uint64_t judged, taught;         /* evaluations that were given an engine; that came with a record */
    uint64_t offered, withheld;      /* jobs that went to who offers what they need; changes of offers */
    uint64_t again, crossed, forged; /* runs done again; results of one that came in the next; made-up ones */
    uint64_t there;                  /* runs that came with their evaluation */
    uint64_t session_tag, session_asked, session_told, session_urls; /* session.get: sent, answered, by a URL */
    unsigned marks;
    char records[WIRE_MAX][12]; /* of the runs that ended in this cycle: effects borrow them */
    size_t record_count;
    uint64_t doomed, overtime, abandoned, set_aside; /* how some of the ends came */
};

static inline int64_t wall_of(const struct model *model) { return 1700000000000 + model->now_ms + model->skew_ms; }

static inline unsigned roll(struct model *model, unsigned sides)
{
    model->random = model->random * 1664525 + 1013904223;
    return (model->random >> 8) % sides;
}

/* True once in so many times, never in the calm. */
static inline bool prng(struct model *model, unsigned one_in) { return roll(model, one_in) == 0 && !model->calm; }

/* ---- the ledger -------------------------------------------------------------------- */

static inline struct row_group *find_group(struct model *model, struct slice id)
{
    for (size_t i = 0; i < model->group_count; i++)
        if (slice_is(id, model->groups[i].id))
            return &model->groups[i];
    return NULL;
}

static inline struct row_rollout *find_rollout(struct model *model, struct slice name)
{
    struct slice id = {name.data, name.len - 2}; /* "<group>/<one digit>" */
    struct row_group *group = find_group(model, id);
    assert_non_null(group);
    return &group->rollouts[name.data[name.len - 1] - '0'];
}

static const char *const stream_names[STREAMS] = {"s0", "s1", "s2", "s3"};
static const char *const stream_owners[STREAMS] = {"alice", "bob", "alice", "carol"};

static const char *const policy_names[POLICIES] = {"default", "other"};

static inline unsigned policy_number(struct slice name) { return slice_is(name, "other"); }

/* What a digest stands for, and back. */
static inline char serves_of(struct slice digest) { return digest.len ? (char)digest.data[0] : 0; }

static inline struct slice digest_of(const char *serves) { return slice_of(serves, *serves ? 1 : 0); }

static inline unsigned stream_number(struct slice name) { return name.data[1] - '0'; }

static inline struct row_early_cancel *find_early_cancel(struct model *model, struct slice name)
{
    for (size_t i = 0; i < model->early_cancel_count; i++)
        if (slice_is(name, model->early_cancels[i].name))
            return &model->early_cancels[i];
    return NULL;
}

static inline int number_of(struct slice id)
{
    return atoi((const char *)id.data + 1); /* "g17": in the model's strings a NUL or a '/' follows */
}

/* So does its stream, and whose it is. */
static inline unsigned stream_of(struct slice group) { return (unsigned)number_of(group) % STREAMS; }

static inline const char *owner_of(struct slice group) { return stream_owners[stream_of(group)]; }

/* What some tasks need of handlers, and what these may offer: the last is all there is. */
static const char *const run_needs[] = {"agent:a", "tool:t", "agent:a tool:t", "agent:session"};
static const char *const eval_needs[] = {"evaluator:e", "evaluator:f"};
enum { OFFER_CHOICES = 4 };
static const char *const run_offers[OFFER_CHOICES] = {NULL, "agent:a@1", "tool:t@2 tool:u",
                                                      "agent:session@1 tool:t@2 agent:a@1 agent:a"};
static const char *const eval_offers[OFFER_CHOICES] = {NULL, "evaluator:f@3", "evaluator:e@1 agent:a evaluator:-",
                                                       "evaluator:f evaluator:e"};

/* A group's task follows from its id. */
static inline struct core_task task_of(struct slice id)
{
    static const char *const images[] = {"img0", "img1", "img2"};
    int number = number_of(id);
    return (struct core_task){.id = slice_from_str("t"),
                              .image = slice_from_str(number % 4 ? NULL : images[number / 4 % IMAGES]),
                              .needs_engine = number % 3 == 0,
                              .needs = {[STAGE_RUN] = slice_from_str(number % 6 < 4 ? NULL : run_needs[number % 4]),
                                        [STAGE_EVAL] = slice_from_str(number % 8 < 5 ? NULL : eval_needs[number % 2])},
                              .judge = slice_from_str(number % 5 == 2   ? "other"
                                                      : number % 5 == 4 ? "default"
                                                                        : NULL),
                              .limit_ms = {5000, 8000, 5000},
                              .policy = slice_from_str(number % 12 ? NULL : "other"),
                              .total_ms = number % 7 ? 0 : 10000 + number * 100};
}

/* Whether its task is evaluated in the agent's own sandbox: its runs come with that. */
static inline bool is_evaluated_there(struct slice id) { return number_of(id) % 12 == 5; }

static inline void persist_group(struct model *model, const struct effect *effect)
{
    assert_null(find_group(model, effect->group));
    assert_true(model->group_count < GROUPS_MAX);
    struct row_group *group = &model->groups[model->group_count++];
    put_text(group->id, sizeof(group->id), effect->group);
    put_text(group->stream, sizeof(group->stream), effect->stream);
    assert_int_equal(stream_number(effect->stream), stream_of(effect->group));
    assert_true(slice_is(effect->owner, owner_of(effect->group)));
    group->samples = effect->samples;
    group->priority = effect->priority;
    group->lease_ms = effect->lease_ms;
    group->accepted_ms = effect->accepted_ms;
    for (unsigned k = 0; k < SAMPLES; k++) {
        char name[48];
        snprintf(name, sizeof(name), "%s/%u", group->id, k);
        group->rollouts[k].doomed = find_early_cancel(model, slice_from_str(name)) ||
                                    find_early_cancel(model, effect->group);
    }
}

static inline void persist_early_cancel(struct model *model, const struct effect *effect)
{
    struct row_early_cancel *early_cancel = find_early_cancel(model, effect->early_cancel.name);
    assert_true(early_cancel || effect->present);
    assert_true(slice_is(effect->early_cancel.owner, owner_of(effect->early_cancel.name)));
    if (!effect->present) {
        *early_cancel = model->early_cancels[--model->early_cancel_count];
        return;
    }
    assert_true(model->early_cancel_count < EARLY_CANCELS);
    early_cancel = early_cancel ? early_cancel : &model->early_cancels[model->early_cancel_count++];
    put_text(early_cancel->name, sizeof(early_cancel->name), effect->early_cancel.name);
    early_cancel->wall_ms = effect->early_cancel.clock_ms;
}

/* One failure more than the ledger knew of, within all budgets: beyond its own, a missing job is an infra outcome,
 * too. */
static inline void persist_failures(struct model *model, const struct effect *effect)
{
    const struct core_failures *new = &effect->failures;
    struct row_group *group = find_group(model, effect->group);
    bool is_init = effect->stage == STAGE_INIT;
    struct row_failures *row = is_init ? &group->failures : &group->rollouts[effect->sample].failures;
    if (!slice_is(new->job, row->job))
        *row = (struct row_failures){0};
    assert_true(new->infras >= row->infras &&new->faults >= row->faults &&new->blames >= row->blames &&new->deaths >=
                row->deaths);
    const uint64_t counted = new->infras + new->faults + new->deaths - row->infras - row->faults - row->deaths;
    const bool is_missing = new->missing == row->missing + 1;
    assert_true(is_missing || new->missing == row->missing);
    assert_int_equal(counted, !is_missing || new->missing > model->settings.infra_budget);
    assert_true(new->infras < model->settings.infra_budget &&new->faults < model->settings.task_budget &&new->blames <
                model->settings.blame_budget);
    assert_true(new->attempt >= row->attempt &&new->fenced_up_to >= row->fenced_up_to &&
                (is_missing || new->history.len));
    put_text(row->job, sizeof(row->job), new->job);
    put_text(row->history, sizeof(row->history), new->history);
    row->attempt = new->attempt;
    row->infras = new->infras;
    row->faults = new->faults;
    row->blames = new->blames;
    row->deaths = new->deaths;
    row->missing = new->missing;
    row->fenced_up_to = new->fenced_up_to;
    model->failures++;
}

/* It was never issued before, and to whom is known. */
static inline void persist_lease(struct model *model, const struct effect *effect)
{
    const struct core_lease *lease = &effect->lease;
    struct row_group *group = find_group(model, effect->group);
    bool is_init = effect->stage == STAGE_INIT;
    struct row_lease *row = is_init ? &group->lease : &group->rollouts[effect->sample].lease;
    assert_int_equal(lease->token, effect->token);
    assert_true(lease->worker.len && lease->key.len);
    put_text(row->job, sizeof(row->job), lease->job);
    put_text(row->worker, sizeof(row->worker), lease->worker);
    put_text(row->key, sizeof(row->key), lease->key);
    row->token = lease->token;
}

static inline unsigned mark_of(struct slice record)
{
    return record.len ? (unsigned)atoi((const char *)record.data) : 0; /* a NUL follows */
}

/* A group is sampled with one tokenizer and one template, and those are its policy's. */
static inline void persist_identity(struct model *model, const struct effect *effect)
{
    struct row_group *group = find_group(model, effect->group);
    char serves = effect->record.len ? (char)effect->record.data[effect->record.len - 1] : '0';
    if (serves <= '9') /* its mark alone */
        return;
    if (group->serves && group->serves != serves)
        fail_msg("the group %s is mixed", group->id);
    assert_int_equal(model->policies[policy_number(task_of(effect->group).policy)], serves);
    group->serves = serves;
}

static inline void persist_run(struct model *model, const struct effect *effect)
{
    struct row_rollout *rollout = find_rollout(model, effect->rollout);
    assert_false(rollout->run_done || rollout->ended);
    rollout->run_done = true;
    rollout->run_again = false;
    rollout->run_outcome = effect->outcome;
    rollout->mark = mark_of(effect->record);
    persist_identity(model, effect);
    rollout->gone_ms = prng(model, 3) ? model->now_ms + roll(model, 2000) : INT64_MAX;
}

static inline void persist_again(struct model *model, const struct effect *effect)
{
    const bool is_sampled = model->samplers[stream_of(effect->group)].is_there;
    if (!effect->rollout.len) { /* a sampler's group has its init again */
        struct row_group *whole = find_group(model, effect->group);
        assert_true(is_sampled && !whole->init_done);
        whole->failures = (struct row_failures){0};
        whole->lease = (struct row_lease){0};
        return;
    }
    struct row_rollout *rollout = find_rollout(model, effect->rollout);
    assert_true((rollout->run_done || is_sampled) && !rollout->ended);
    rollout->run_again |= rollout->run_done;
    rollout->run_done = false;
    rollout->mark = 0;
    rollout->failures = (struct row_failures){0};
    rollout->lease = (struct row_lease){0};
    struct row_group *group = find_group(model, effect->group);
    bool has_runs = false;
    for (unsigned k = 0; k < group->samples; k++)
        has_runs |= group->rollouts[k].run_done;
    group->serves = has_runs ? group->serves : 0;
    model->again++;
}

static inline bool says(struct slice text, const char *words)
{
    return text.len && memmem(text.data, text.len, words, strlen(words));
}

static inline void persist_end(struct model *model, const struct effect *effect)
{
    const struct core_end *end = &effect->end;
    struct row_rollout *rollout = find_rollout(model, end->rollout);
    unsigned stream = stream_number(end->stream);
    assert_false(rollout->ended);
    assert_true(!rollout->doomed || end->outcome == OUTCOME_CANCELLED);
    assert_int_equal(end->seq, model->head[stream] + 1);
    assert_true(!end->has_reward || rollout->run_done);
    assert_true(!is_evaluated_there(end->group) || end->outcome != OUTCOME_OK || rollout->run_done);
    if (end->has_reward) /* it is of the very run that is recorded */
        assert_true(end->reward == rollout->mark);
    assert_true(!end->trainable || end->outcome == OUTCOME_OK || end->outcome == OUTCOME_AGENT);
    if (effect->record.len && rollout->run_done) { /* so is a record that an evaluation puts in its place */
        assert_int_equal(mark_of(effect->record), rollout->mark);
        model->taught++;
    }
    rollout->ended = true;
    rollout->seq = ++model->head[stream];
    rollout->ended_ms = end->clock_ms;
    model->ends++;
    model->doomed += rollout->doomed;
    model->overtime += says(end->detail, "its total time of");
    model->abandoned += says(end->detail, "was not heard from");
    model->set_aside += says(end->detail, "\nset aside: ");
}

/* Of a client, or of retention: never backwards, never beyond what has ended. */
static inline void persist_ack(struct model *model, const struct effect *effect)
{
    unsigned stream = stream_number(effect->stream);
    assert_in_range(effect->seq, model->first[stream], model->head[stream]);
    model->first[stream] = effect->seq + 1;
}

static inline void persist(struct model *model, const struct effect *effect)
{
    switch (effect->kind) {
    case PERSIST_GROUP: persist_group(model, effect); break;
    case PERSIST_INIT:
        assert_false(find_group(model, effect->group)->init_done);
        find_group(model, effect->group)->init_done = true;
        break;
    case PERSIST_RUN: persist_run(model, effect); break;
    case PERSIST_AGAIN: persist_again(model, effect); break;
    case PERSIST_LEASE: persist_lease(model, effect); break;
    case PERSIST_END: persist_end(model, effect); break;
    case PERSIST_ACK: persist_ack(model, effect); break;
    case PERSIST_ENGINE: {
        unsigned e = effect->engine.data[effect->engine.len - 1] - '0';
        model->engines[e] = effect->present;
        model->draining[e] = effect->present && effect->row.draining;
        model->runs_max[e] = effect->row.runs_max;
        put_text(model->versions[e], sizeof(model->versions[e]), effect->row.version);
        put_text(model->calls[e], sizeof(model->calls[e]), effect->row.calls);
        model->paused_until_ms[e] = effect->row.paused_until_ms;
        model->version_numbers[e] = effect->row.version_number;
        model->told[e] = serves_of(effect->row.template);
        model->policy_of[e] = policy_number(effect->row.policy);
        if (effect->row.version_number > model->highest_version)
            model->highest_version = effect->row.version_number;
    } break;
    case PERSIST_POLICY:
        model->policies[policy_number(effect->policy.name)] = effect->present ? serves_of(effect->policy.template) : 0;
        break;
    case PERSIST_SAMPLER:
    case PERSIST_SAMPLED:
    case PERSIST_BATCH: {
        struct row_sampler *sampler = &model->samplers[stream_number(effect->stream)];
        model->closed += effect->kind == PERSIST_SAMPLER && !effect->present;
        model->sampled += effect->kind == PERSIST_SAMPLED && effect->present && !sampler->groups[effect->seq].is_there;
        model->replaced += effect->kind == PERSIST_SAMPLED && effect->present &&
                           effect->sampled->replaced > sampler->groups[effect->seq].row.replaced;
        persist_of_sampler(sampler, effect);
    } break;
    case PERSIST_FAILURES: persist_failures(model, effect); break;
    case PERSIST_EARLY_CANCEL: persist_early_cancel(model, effect); break;
    default: break;
    }
}

static inline void restore_failures(struct model *model, const struct row_failures *row)
{
    struct core_failures told = {.job = slice_from_str(row->job),
                                 .attempt = row->attempt,
                                 .infras = row->infras,
                                 .faults = row->faults,
                                 .blames = row->blames,
                                 .deaths = row->deaths,
                                 .missing = row->missing,
                                 .history = slice_from_str(row->history),
                                 .fenced_up_to = row->fenced_up_to};
    if (row->job[0])
        assert_true(core_restore_failures(model->core, &told));
}

static inline void restore_lease(struct model *model, const struct row_lease *row)
{
    struct core_lease told = {.job = slice_from_str(row->job),
                              .token = row->token,
                              .worker = slice_from_str(row->worker),
                              .key = slice_from_str(row->key)};
    if (row->job[0])
        assert_true(core_restore_lease(model->core, &told));
}

static inline void restore_group(struct model *model, struct row_group *group)
{
    struct core_group_row row = {.group = slice_from_str(group->id),
                                 .stream = slice_from_str(group->stream),
                                 .samples = group->samples,
                                 .task_hash = 1,
                                 .task = task_of(slice_from_str(group->id)),
                                 .init_done = group->init_done,
                                 .priority = group->priority,
                                 .lease_ms = group->lease_ms,
                                 .accepted_ms = group->accepted_ms};
    assert_true(core_restore_group(model->core, &row));
    for (unsigned k = 0; k < group->samples; k++) {
        const struct row_rollout *rollout = &group->rollouts[k];
        if (rollout->ended && rollout->seq < model->first[stream_number(row.stream)])
            continue;
        struct core_rollout_row told = {.rollout = row.group,
                                        .group = row.group,
                                        .sample = k,
                                        .ended = rollout->ended,
                                        .run_done = rollout->run_done,
                                        .run_again = rollout->run_again,
                                        .run_outcome = rollout->run_outcome,
                                        .stream = row.stream,
                                        .seq = rollout->seq,
                                        .ended_ms = rollout->ended_ms};
        assert_true(core_restore_rollout(model->core, &told));
        restore_failures(model, &rollout->failures);
        restore_lease(model, &rollout->lease);
    }
    restore_failures(model, &group->failures);
    restore_lease(model, &group->lease);
}

static inline void start_broker(struct model *model)
{
    core_destroy(&model->core);
    model->core = core_create(&model->settings, ++model->epoch, model->now_ms);
    core_restore_clock(model->core, wall_of(model));
    core_restore_versions(model->core, model->highest_version);
    for (unsigned s = 0; s < STREAMS; s++)
        assert_true(core_restore_stream(model->core, slice_from_str(stream_names[s]), slice_from_str(stream_owners[s]),
                                        model->first[s], model->head[s]));
    for (unsigned p = 0; p < POLICIES; p++)
        if (model->policies[p])
            assert_true(core_restore_policy(model->core, &(struct core_policy){slice_from_str(policy_names[p]),
                                                                               digest_of(&model->policies[p]),
                                                                               digest_of(&model->policies[p])}));
    for (unsigned e = 0; e < ENGINES; e++) {
        char url[32];
        snprintf(url, sizeof(url), "http://e%u", e);
        if (model->engines[e])
            assert_true(core_restore_engine(
                model->core, &(struct core_engine){.url = slice_from_str(url),
                                                   .draining = model->draining[e],
                                                   .runs_max = model->runs_max[e],
                                                   .version = slice_from_str(model->versions[e]),
                                                   .calls = slice_from_str(model->calls[e]),
                                                   .version_number = model->version_numbers[e],
                                                   .policy = slice_from_str(policy_names[model->policy_of[e]]),
                                                   .tokenizer = digest_of(&model->told[e]),
                                                   .template = digest_of(&model->told[e]),
                                                   .paused_until_ms = model->paused_until_ms[e]}));
    }
    for (size_t i = 0; i < model->group_count; i++)
        restore_group(model, &model->groups[i]);
    for (unsigned s = 0; s < STREAMS; s++)
        restore_sampler(model->core, &model->samplers[s], slice_from_str(stream_names[s]));
    for (size_t i = 0; i < model->early_cancel_count; i++) {
        struct slice name = slice_from_str(model->early_cancels[i].name);
        assert_true(core_restore_early_cancel(model->core, name, slice_from_str(owner_of(name)),
                                              model->early_cancels[i].wall_ms));
    }
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        model->workers[i].lane = false;
}

#endif
