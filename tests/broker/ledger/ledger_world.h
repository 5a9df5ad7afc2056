/*
 * ledger_world.h - a ledger in a directory of its own, effects in few words, and a restore
 * as text, so that a test compares two strings.
 */
#ifndef SLUICE_TESTS_BROKER_LEDGER_LEDGER_WORLD_H
#define SLUICE_TESTS_BROKER_LEDGER_LEDGER_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "broker/ledger/ledger.h"
#include "broker/task_summary.h"
#include "common/base/cleanup.h"

#define S(text) slice_from_str(text)

static const char task_json[] = "{\"task\":\"add\",\"kind\":\"noop\"}";

struct world {
    char dir[64];
    struct ledger *ledger;
    struct buffer told; /* a restore, as text */
};

/* ---- the world -------------------------------------------------------------------------- */

/* As a broker opens it without options. */
static inline int open_dir(struct ledger **ret, const char *dir, struct fail *fail)
{
    struct ledger_options options = {.dir = dir};
    return ledger_open(ret, &options, fail);
}

static inline void open_ledger(struct world *world)
{
    struct fail fail = {0};
    if (open_dir(&world->ledger, world->dir, &fail) != 0)
        fail_msg("%s", fail.text);
}

static inline void reopen(struct world *world)
{
    ledger_close(&world->ledger);
    open_ledger(world);
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    strcpy(world->dir, "/tmp/sluice-ledger-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    open_ledger(world);
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    ledger_close(&world->ledger);
    buffer_finish(&world->told);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", world->dir);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

static inline int commit_undurable(struct ledger *ledger, const struct effect *effects, size_t count, struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = ledger_apply(ledger, &effects[i], fail);
    return code ? code : ledger_commit(ledger, fail);
}

/* And durable. */
static inline int commit_all(struct ledger *ledger, const struct effect *effects, size_t count, struct fail *fail)
{
    int code = commit_undurable(ledger, effects, count, fail);
    return code ? code : ledger_sync(ledger, fail);
}

static inline void commit(struct world *world, const struct effect *effects, size_t count)
{
    struct fail fail = {0};
    if (commit_all(world->ledger, effects, count, &fail) != 0)
        fail_msg("%s", fail.text);
}

static inline void commit_one(struct world *world, struct effect effect) { commit(world, &effect, 1); }

/* ---- effects, short --------------------------------------------------------------------------- */

static inline struct effect group(const char *id, const char *stream, unsigned samples)
{
    return (struct effect){.kind = PERSIST_GROUP,
                           .group = S(id),
                           .stream = S(stream),
                           .samples = samples,
                           .task = S(task_json),
                           .task_hash = task_summary_hash(S(stream), samples, S(task_json))};
}

static inline struct effect init_of(const char *id, struct slice digest, struct slice layer)
{
    return (struct effect){.kind = PERSIST_INIT, .group = S(id), .layer_digest = digest, .layer = layer, .ms = 35};
}

static inline struct effect run_of(const char *rollout, struct slice record)
{
    return (struct effect){.kind = PERSIST_RUN,
                           .rollout = S(rollout),
                           .outcome = OUTCOME_AGENT,
                           .detail = S("3 turns"),
                           .layer_digest = S("sha256:run"),
                           .layer = S("run bytes"),
                           .answer = S("\\boxed{2}"),
                           .record = record,
                           .engine = S("http://e:1"),
                           .ms = 5100};
}

static inline struct effect end_of(const char *stream, uint64_t seq, const char *group_id, const char *rollout)
{
    return (struct effect){.kind = PERSIST_END,
                           .end = {.stream = S(stream),
                                   .seq = seq,
                                   .rollout = S(rollout),
                                   .group = S(group_id),
                                   .task = S("add"),
                                   .attempt = 2,
                                   .outcome = OUTCOME_OK,
                                   .trainable = true,
                                   .has_reward = true,
                                   .reward = 0.5,
                                   .detail = S("half"),
                                   .init_layer = S("sha256:init"),
                                   .engine = S("http://e:1"),
                                   .wait_ms = 1,
                                   .init_ms = 2,
                                   .run_ms = 3,
                                   .eval_ms = 4,
                                   .ended_ms = 5,
                                   .clock_ms = 5}};
}

static inline struct effect ack(const char *stream, uint64_t seq)
{
    return (struct effect){.kind = PERSIST_ACK, .stream = S(stream), .seq = seq};
}

/* ---- a restore as text -------------------------------------------------------------------------- */

static inline bool tell_stream(void *context, struct slice name, struct slice owner, uint64_t first, uint64_t head)
{
    return buffer_printf(context, "stream %.*s %llu..%llu%s%.*s\n", SLICE_ARG(name), (unsigned long long)first,
                         (unsigned long long)head, owner.len ? " of " : "", SLICE_ARG(owner));
}

static inline bool tell_policy(void *context, const struct core_policy *row)
{
    return buffer_printf(context, "policy %.*s %.*s %.*s\n", SLICE_ARG(row->name), SLICE_ARG(row->tokenizer),
                         SLICE_ARG(row->template));
}

static inline bool tell_engine(void *context, const struct core_engine *row)
{
    buffer_printf(context, "engine %.*s", SLICE_ARG(row->url));
    if (row->runs_max)
        buffer_printf(context, " x%llu", (unsigned long long)row->runs_max);
    if (row->version.len)
        buffer_printf(context, " version=%.*s #%llu", SLICE_ARG(row->version), (unsigned long long)row->version_number);
    if (row->calls.len)
        buffer_printf(context, " %.*s until %llu", SLICE_ARG(row->calls), (unsigned long long)row->paused_until_ms);
    if (row->policy.len)
        buffer_printf(context, " of %.*s, %.*s %.*s", SLICE_ARG(row->policy), SLICE_ARG(row->tokenizer),
                      SLICE_ARG(row->template));
    if (row->credentials.len)
        buffer_printf(context, " credentials=%.*s", SLICE_ARG(row->credentials));
    return buffer_printf(context, "%s\n", row->draining ? " draining" : "");
}

static inline bool tell_group(void *context, const struct core_group_row *row)
{
    assert_true(row->task_hash != 0);
    return buffer_printf(context, "group %.*s %.*s x%llu task=%.*s init=%d %.*s %llu%s%.*s%s%.*s%s%.*s%s%s%.*s\n",
                         SLICE_ARG(row->group), SLICE_ARG(row->stream), (unsigned long long)row->samples,
                         SLICE_ARG(row->task.id), row->init_done, SLICE_ARG(row->init_layer),
                         (unsigned long long)row->init_ms, row->task.policy.len ? " of " : "",
                         SLICE_ARG(row->task.policy), row->task.needs[STAGE_RUN].len ? " run needs " : "",
                         SLICE_ARG(row->task.needs[STAGE_RUN]), row->task.needs[STAGE_EVAL].len ? " eval needs " : "",
                         SLICE_ARG(row->task.needs[STAGE_EVAL]), row->task.reads_record ? " and the record" : "",
                         row->task.judge.len ? " judged by " : "", SLICE_ARG(row->task.judge));
}

static inline bool tell_rollout(void *context, const struct core_rollout_row *row)
{
    if (row->ended)
        return buffer_printf(context, " %.*s ended %.*s %llu\n", SLICE_ARG(row->rollout), SLICE_ARG(row->stream),
                             (unsigned long long)row->seq);
    if (row->run_done)
        return buffer_printf(context, " %.*s run %s '%.*s' %llu %.*s\n", SLICE_ARG(row->rollout),
                             outcome_wire(row->run_outcome), SLICE_ARG(row->run_detail),
                             (unsigned long long)row->run_ms, SLICE_ARG(row->engine));
    return buffer_printf(context, " %.*s %s\n", SLICE_ARG(row->rollout), row->run_again ? "again" : "open");
}

static inline bool tell_sampler(void *context, const struct core_sampler *row, struct slice answer)
{
    return buffer_printf(context, "sampler %.*s by %.*s batch %llu of %llu '%.*s'\n", SLICE_ARG(row->stream),
                         SLICE_ARG(row->trainer), (unsigned long long)row->batch, (unsigned long long)row->rule.groups,
                         SLICE_ARG(answer));
}

static inline bool tell_sampled(void *context, const struct core_sampled *row)
{
    return buffer_printf(context, " %.*s %llu state=%llu ended=%llu\n", SLICE_ARG(row->group),
                         (unsigned long long)row->number, (unsigned long long)row->state,
                         (unsigned long long)row->ended);
}

static inline bool tell_failures(void *context, const struct core_failures *failures)
{
    return buffer_printf(context,
                         " %.*s attempt=%llu infras=%llu faults=%llu blames=%llu deaths=%llu"
                         " missing=%llu fenced_up_to=%llu '%.*s'\n",
                         SLICE_ARG(failures->job), (unsigned long long)failures->attempt,
                         (unsigned long long)failures->infras, (unsigned long long)failures->faults,
                         (unsigned long long)failures->blames, (unsigned long long)failures->deaths,
                         (unsigned long long)failures->missing, (unsigned long long)failures->fenced_up_to,
                         SLICE_ARG(failures->history));
}

static inline bool tell_lease(void *context, const struct core_lease *lease)
{
    return buffer_printf(context, " %.*s leased %llu to %.*s of %.*s\n", SLICE_ARG(lease->job),
                         (unsigned long long)lease->token, SLICE_ARG(lease->worker), SLICE_ARG(lease->key));
}

static inline bool tell_early_cancel(void *context, struct slice name, struct slice owner, uint64_t wall_ms)
{
    return buffer_printf(context, "early cancel %.*s of %.*s at %llu\n", SLICE_ARG(name), SLICE_ARG(owner),
                         (unsigned long long)wall_ms);
}

static inline struct ledger_reader text_reader(struct buffer *told)
{
    return (struct ledger_reader){
        told,          0,          tell_stream,       tell_engine, tell_group,   tell_rollout,
        tell_failures, tell_lease, tell_early_cancel, tell_policy, tell_sampler, tell_sampled};
}

static inline const char *restored(struct world *world)
{
    buffer_clear(&world->told);
    struct ledger_reader reader = text_reader(&world->told);
    struct fail fail = {0};
    if (ledger_restore(world->ledger, &reader, &fail) != 0)
        fail_msg("%s", fail.text);
    assert_true(buffer_append(&world->told, "", 1));
    return (const char *)world->told.data;
}

/* `count` groups of one, all ended as 1..count of "train". */
static inline void commit_ended(struct world *world, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[16], rollout[32];
        snprintf(id, sizeof(id), "g%u", i);
        snprintf(rollout, sizeof(rollout), "g%u/0", i);
        const struct effect effects[] = {group(id, "train", 1), run_of(rollout, S("r")),
                                         end_of("train", i, id, rollout)};
        commit(world, effects, 3);
    }
}

static inline void do_all_chores(struct world *world)
{
    struct fail fail;
    for (int i = 0; i < 1000 && ledger_has_chores(world->ledger); i++)
        assert_int_equal(ledger_do_chores(world->ledger, &fail), 0);
    assert_false(ledger_has_chores(world->ledger));
}

#endif
