/*
 * A scenario through all of the core, with the first, the second, the third ...
 * allocation failing until one run passes without. Each failure must be noticed,
 * end the intake, and leave nothing behind (the address sanitizer looks on).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/core/core.h"

static bool armed;    /* only inside the core */
static unsigned left; /* allocations until one fails */
static bool has_failed;

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
    if (!armed || --left > 0)
        return false;
    left = UINT32_MAX;
    has_failed = true;
    return true;
}

void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }

void *__wrap_realloc(void *memory, size_t size) { return fails() ? NULL : __real_realloc(memory, size); }

/* ---- the scenario ------------------------------------------------------------------ */

static int64_t now_ms;
static uint64_t last_token;
static const char *image = "old";   /* of the next submits */
static const char *need;            /* of their evals */
static const char *offers;          /* of the next beats */
static const char *speaker;         /* a client's name; NULL: an admin's */
static unsigned kinds[BACK_UP + 1]; /* effects seen, by kind */

#define TEXT(s) slice_from_str(s)
#define GUARDED(...)                                                                                                   \
    do {                                                                                                               \
        armed = true;                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        armed = false;                                                                                                 \
    } while (0)

static void settle(struct core *core)
{
    GUARDED(core_dispatch(core, now_ms));
    assert_null(core_check(core));
    struct effects effects = core_effects(core);
    for (size_t i = 0; i < effects.count; i++) {
        kinds[effects.items[i].kind]++;
        if (effects.items[i].kind == LANE_JOB)
            last_token = effects.items[i].token;
    }
    core_effects_clear(core);
}

static void say(struct core *core, const char *client, enum message_id id, const void *in)
{
    struct core_task task = {
        .id = TEXT("add"), .image = TEXT(image), .needs_engine = true, .limit_ms = {10, 20, 30}, .total_ms = 40000};
    task.needs[STAGE_EVAL] = TEXT(need);
    struct caller caller = {TEXT(client), TEXT(speaker), !speaker};
    GUARDED(core_handle(core, ++now_ms, 1, &caller, id, in, id == MSG_group_submit ? &task : NULL, 1));
    settle(core);
}

static void result(struct core *core, const char *worker, const char *job, const char *outcome)
{
    struct msg_job_result in = {.worker = TEXT(worker),
                                .job = TEXT(job),
                                .token = last_token,
                                .outcome = TEXT(outcome),
                                .detail = TEXT("so it was"),
                                .layer_digest = TEXT("sha256:ab"),
                                .reward = 1,
                                .has_reward = true,
                                .ms = 5};
    say(core, "", MSG_job_result, &in);
}

static void blame(struct core *core, const char *worker, const char *job, const char *outcome, const char *fault)
{
    struct msg_job_result in = {.worker = TEXT(worker),
                                .job = TEXT(job),
                                .token = last_token,
                                .outcome = TEXT(outcome),
                                .fault = TEXT(fault),
                                .has_fault = true,
                                .detail = TEXT("it was not there"),
                                .ms = 5};
    say(core, "", MSG_job_result, &in);
}

static void submit(struct core *core, const char *group)
{
    struct msg_group_submit in = {.tag = 1,
                                  .group = TEXT(group),
                                  .stream = TEXT("test"),
                                  .samples = 2,
                                  .task = TEXT("{}"),
                                  .has_lease_ms = true,
                                  .lease_ms = 20000};
    say(core, "trainer", MSG_group_submit, &in);
}

static void tick(struct core *core, int64_t wait_ms)
{
    GUARDED(core_tick(core, now_ms += wait_ms, 1));
    settle(core);
}

static void beat(struct core *core, const char *worker, const char *stage, const char *lane)
{
    struct msg_worker_beat in = {.worker = TEXT(worker),
                                 .stage = TEXT(stage),
                                 .slots = 4,
                                 .lane = TEXT(lane),
                                 .host = TEXT("node7"),
                                 .progress = (uint64_t)now_ms,
                                 .offers = TEXT(offers),
                                 .has_offers = offers,
                                 .epoch = 3};
    say(core, "", MSG_worker_beat, &in);
}

static void cancel(struct core *core, const char *stream)
{
    struct msg_rollout_cancel in = {.tag = 1, .stream = TEXT(stream), .has_stream = true};
    say(core, "trainer", MSG_rollout_cancel, &in);
}

static void restore(struct core *core)
{
    struct core_group_row group = {.group = TEXT("old"),
                                   .stream = TEXT("train"),
                                   .samples = 3,
                                   .task = {.id = TEXT("add"), .limit_ms = {10, 20, 30}},
                                   .init_done = true,
                                   .init_layer = TEXT("sha256:cd")};
    struct core_rollout_row rows[] = {
        {.rollout = TEXT("old/0"), .group = TEXT("old"), .sample = 0},
        {.rollout = TEXT("old/1"),
         .group = TEXT("old"),
         .sample = 1,
         .run_done = true,
         .run_detail = TEXT("3 turns"),
         .engine = TEXT("http://gone:1")},
        {.rollout = TEXT("old/2"), .group = TEXT("old"), .sample = 2, .ended = true, .seq = 1}};
    struct core_failures failures = {
        .job = TEXT("eval:old/1"), .attempt = 2, .infras = 1, .history = TEXT("+0 s infra on e7\n+3 s infra on e8")};
    struct core_lease lease = {.job = TEXT("eval:old/1"), .token = 5, .worker = TEXT("e8"), .key = TEXT("node1")};
    bool whole = true;
    core_restore_clock(core, 1);
    GUARDED(whole = core_restore_stream(core, TEXT("train"), slice_of(NULL, 0), 1, 1) &&
                    core_restore_engine(core, &(struct core_engine){.url = TEXT("http://there:1")}) &&
                    core_restore_group(core, &group));
    for (size_t i = 0; whole && i < 3; i++)
        GUARDED(whole = core_restore_rollout(core, &rows[i]));
    if (whole)
        GUARDED(whole = core_restore_failures(core, &failures) && core_restore_lease(core, &lease) &&
                        core_restore_early_cancel(core, TEXT("h/1"), slice_of(NULL, 0), 1));
    assert_int_equal(whole, !has_failed);
}

/* An image that goes bad, an engine that does, cancels ahead, a trainer that goes away. */
static void stumble(struct core *core)
{
    struct msg_rollout_cancel ahead = {.tag = 1, .group = TEXT("ahead"), .has_group = true};
    struct msg_stream_renew renew = {.tag = 1, .stream = TEXT("test")};
    say(core, "trainer", MSG_rollout_cancel, &ahead);
    submit(core, "ahead");
    submit(core, "h");
    image = "bad";
    submit(core, "x");
    blame(core, "i1", "init:x", "infra", "image"); /* set aside at once */
    submit(core, "y");
    tick(core, 2000);
    blame(core, "i1", "init:x", "task", "image"); /* y has failed */
    tick(core, 0);
    image = "good";
    submit(core, "z");
    result(core, "i1", "init:z", "ok");
    beat(core, "r2", "run", "tcp://h:5");
    blame(core, "r2", "run:z/1", "infra", "engine");
    say(core, "trainer", MSG_stream_renew, &renew);
    tick(core, 19000);
    tick(core, 2000);
}

/* Two that wait for what nobody offers; then somebody does. The others' evaluators need nothing. */
static void wait_for_handlers(struct core *core)
{
    need = "evaluator:grade";
    image = "good";
    submit(core, "n");
    need = NULL;
    result(core, "i1", "init:n", "ok");
    beat(core, "r4", "run", "tcp://h:7");
    result(core, "r4", "run:n/1", "ok");
    offers = "evaluator:other evaluator:-";
    beat(core, "e2", "eval", "tcp://h:8");
    offers = "evaluator:grade@1 evaluator:other";
    beat(core, "e2", "eval", "tcp://h:8");
    blame(core, "e2", "eval:n/1", "infra", "handler");
    offers = NULL;
    tick(core, 600);
    beat(core, "e2", "eval", "tcp://h:8");
}

/* Groups of a sampler: one has its verdict, one is replaced; a batch is made, waited for, and all is closed. */
static void sample(struct core *core)
{
    struct msg_sampler_open open = {.tag = 1,
                                    .stream = TEXT("sampled"),
                                    .trainer = TEXT("t"),
                                    .groups = 1,
                                    .has_window = true,
                                    .window = 1,
                                    .filter = TEXT("none"),
                                    .has_filter = true};
    struct msg_sampler_next next = {
        .tag = 1, .stream = TEXT("sampled"), .trainer = TEXT("t"), .batch = 1, .has_wait_ms = true, .wait_ms = 100};
    struct msg_sampler_close close = {.tag = 1, .stream = TEXT("sampled")};
    struct msg_group_submit submit = {
        .tag = 1, .group = TEXT("s1"), .stream = TEXT("sampled"), .samples = 1, .task = TEXT("{}")};
    say(core, "trainer", MSG_sampler_open, &open);
    say(core, "trainer", MSG_group_submit, &submit);
    submit.group = TEXT("s2");
    say(core, "trainer", MSG_group_submit, &submit);
    result(core, "i1", "init:s1", "ok");
    beat(core, "r5", "run", "tcp://h:10");
    result(core, "r5", "run:s1/0", "ok");
    result(core, "e1", "eval:s1/0", "ok");
    say(core, "trainer", MSG_sampler_next, &next);
    next.batch = 2;
    say(core, "trainer", MSG_sampler_next, &next);
    tick(core, 200);
    say(core, "trainer", MSG_sampler_close, &close);
    tick(core, 10);
}

/* Clients with streams of their own, a drain, and trajectories that are kept too long. */
static void share(struct core *core)
{
    static const char *const clients[] = {"alice", "bob", "carol"};
    struct msg_worker_drain drain = {.tag = 1, .host = TEXT("node7"), .has_host = true};
    for (unsigned i = 0; i < 3; i++) {
        struct caller caller = {TEXT("route"), TEXT(clients[i]), false};
        char group[32];
        speaker = clients[i];
        GUARDED(core_may_read(core, &caller, TEXT(clients[i])));
        snprintf(group, sizeof(group), "of-%s", speaker);
        struct msg_group_submit submit = {.tag = 1,
                                          .group = TEXT(group),
                                          .stream = TEXT(speaker),
                                          .samples = 100,
                                          .task = TEXT("{}"),
                                          .has_priority = true,
                                          .priority = i};
        say(core, "trainer", MSG_group_submit, &submit);
        cancel(core, speaker);
    }
    speaker = NULL;
    beat(core, "r3", "run", "tcp://h:6");
    say(core, "operator", MSG_worker_drain, &drain);
    tick(core, 1000);
    tick(core, 1000);
}

static void live(struct core *core)
{
    struct msg_group_submit submit = {
        .tag = 1, .group = TEXT("g"), .stream = TEXT("test"), .samples = 2, .task = TEXT("{}")};
    struct msg_engine_add engine = {.tag = 1, .url = TEXT("http://127.0.0.1:8080")};
    struct msg_status_get status = {.tag = 1};
    struct msg_stream_ack ack = {.tag = 1, .stream = TEXT("test"), .seq = 2};
    struct msg_stream_fetch fetch = {.tag = 1, .stream = TEXT("test"), .from = 1};
    restore(core);
    say(core, "operator", MSG_engine_add, &engine);
    say(core, "trainer", MSG_group_submit, &submit);
    beat(core, "i1", "init", "tcp://h:1");
    result(core, "i1", "init:g", "infra");
    tick(core, 600);
    result(core, "i1", "init:g", "ok");
    beat(core, "r1", "run", "tcp://h:2");
    beat(core, "r1", "run", "tcp://h:3");
    result(core, "r1", "run:g/1", "agent");
    beat(core, "e1", "eval", "tcp://h:4");
    result(core, "e1", "eval:g/1", "ok");
    GUARDED(core_lane_waits(core, now_ms, TEXT("r1"), TEXT("why")));
    GUARDED(core_lane_waits(core, now_ms, TEXT("r1"), TEXT("")));
    GUARDED(core_lane_broke(core, now_ms, TEXT("r1")));
    settle(core);
    sample(core);
    wait_for_handlers(core);
    stumble(core);
    share(core);
    say(core, "trainer", MSG_stream_fetch, &fetch);
    cancel(core, "test");
    if (!core_failed(core))
        say(core, "trainer", MSG_stream_ack, &ack);
    say(core, "operator", MSG_status_get, &status);
    tick(core, 10000);
}

static void every_failing_allocation_is_noticed_and_nothing_is_left_behind(void **state)
{
    (void)state;
    struct core_settings settings = core_settings_default();
    unsigned nth = 0;
    settings.breaker_faults = 1;
    settings.task_budget = 2;
    settings.keep_count = 10;
    do {
        struct core *core = NULL;
        left = ++nth;
        has_failed = false;
        last_token = 1;
        image = "old";
        need = offers = NULL;
        speaker = NULL;
        memset(kinds, 0, sizeof(kinds));
        GUARDED(core = core_create(&settings, 3, now_ms));
        assert_int_equal(core == NULL, has_failed);
        if (!core)
            continue;
        live(core);
        assert_int_equal(core_failed(core), has_failed);
        struct msg_status_get status = {.tag = 1};
        core_handle(core, now_ms, 1, &(struct caller){.route = TEXT("operator"), .is_admin = true}, MSG_status_get,
                    &status, NULL, 0);
        /* A failed core takes nothing in. */
        assert_int_equal(core_effects(core).count, !has_failed);
        core_destroy(&core);
        assert_null(core);
    } while (has_failed);
    assert_true(kinds[PERSIST_FAILURES] > 2 && kinds[PERSIST_EARLY_CANCEL] > 1 && kinds[PERSIST_END] > 9 &&
                kinds[PERSIST_ACK] > 3 && kinds[PERSIST_SAMPLED] > 3 && kinds[PERSIST_BATCH] > 0);
    print_message("%u allocations, each failed once\n", nth - 1);
    assert_in_range(nth, 60, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_noticed_and_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
