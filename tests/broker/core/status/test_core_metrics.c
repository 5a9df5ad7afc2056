/* metrics.get: each number is what happened, once, and sums are what status.get says. */
#include "tests/broker/core/core_world.h"
#include "schemas/metrics/metrics.h"

#include <jansson.h>

static char text[1 << 20];

static const char *metrics_of(struct world *world)
{
    struct buffer out = {0};
    assert_true(core_metrics(world->core, false, &out) && out.len < sizeof(text));
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    buffer_finish(&out);
    return text;
}

/* The value of that sample, in the line that begins so; NaN-free. */
static double value(struct world *world, const char *sample)
{
    const size_t len = strlen(sample);
    for (const char *line = metrics_of(world); line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, sample, len) == 0 && line[len] == ' ')
            return strtod(line + len, NULL);
    fail_msg("no %s in:\n%s", sample, text);
    return 0;
}

static bool has(struct world *world, const char *words) { return strstr(metrics_of(world), words) != NULL; }

/* The sum over all samples of a name. */
static double sum_of(struct world *world, const char *name)
{
    const size_t len = strlen(name);
    double sum = 0;
    for (const char *line = metrics_of(world); line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, len) == 0 && (line[len] == ' ' || line[len] == '{'))
            sum += strtod(strrchr(strndupa(line, strcspn(line, "\n")), ' '), NULL);
    return sum;
}

static double status_number(struct world *world, const char *part, const char *name)
{
    json_t *status = json_loads(world_status(world), 0, NULL);
    const double number = json_number_value(json_object_get(json_object_get(status, part), name));
    json_decref(status);
    return number;
}

static void rollouts_are_where_they_are(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "a", 3);
    assert_true(value(world, "sluice_rollouts_live{stage=\"init\",state=\"queued\"}") == 3);
    world_beat(world, "i1", "init", 1, NULL);
    assert_true(value(world, "sluice_rollouts_live{stage=\"init\",state=\"leased\"}") == 3);
    world_cancel(world, "a/2", NULL, NULL);
    assert_true(value(world, "sluice_rollouts_live{stage=\"init\",state=\"leased\"}") == 2);
    world_result(world, "i1", "init:a", token_of(world, "init:a"), "infra");
    assert_true(value(world, "sluice_rollouts_live{stage=\"init\",state=\"delayed\"}") == 2);
    world_wait(world, 60000);
    world_beat(world, "i1", "init", 1, NULL);
    world_result(world, "i1", "init:a", token_of(world, "init:a"), "ok");
    assert_true(value(world, "sluice_rollouts_live{stage=\"run\",state=\"queued\"}") == 2);
    world_beat(world, "r1", "run", 1, NULL);
    assert_true(value(world, "sluice_rollouts_live{stage=\"run\",state=\"leased\"}") == 1);
    assert_true(sum_of(world, "sluice_rollouts_live") == 2);
    assert_true(sum_of(world, "sluice_rollouts_live") == status_number(world, "rollouts", "live"));
    assert_true(sum_of(world, "sluice_stream_pending") == 2);
    assert_true(value(world, "sluice_rollouts_ended_total{outcome=\"cancelled\",trainable=\"false\"}") == 1);
    assert_true(value(world, "sluice_rollouts_accepted_total") == 3);
    world_close(world);
}

static const struct msg_job_result spent = {
    .ms = 3000,
    .sampled_tokens = 120,
    .has_sampled_tokens = true,
    .turns = 3,
    .has_turns = true,
    .prompt_tokens = 900,
    .has_prompt_tokens = true,
    .cached_tokens = 800,
    .has_cached_tokens = true,
    .times = {(const uint8_t *)"engine=1500:5x2,6x1 sandbox=30:2x1 tool:bash=20:0x2 x", 53},
    .has_times = true,
    .traces = {(const uint8_t *)"first=1 cut=2", 13},
    .has_traces = true,
};

static void a_results_numbers_are_counted_once_however_often_it_is_sent(void **state)
{
    (void)state;
    static const char url[] = "http://127.0.0.1:8080";
    struct world *world = world_open();
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, url);
    world_reach_run(world, "g", 1);
    world_beat_with(world, "r1", "run", (struct beat){.sandbox = "overlay-tmpfs"}, NULL);
    const uint64_t token = token_of(world, "run:g/0");
    for (int i = 0; i < 3; i++)
        world_result_with(world, "r1", "run:g/0", token, "ok", spent);
    world_result_with(world, "r1", "run:g/0", token + 1, "ok", spent); /* of no dispatch */
    assert_true(value(world, "sluice_turns_total{engine=\"http://127.0.0.1:8080\"}") == 3);
    assert_true(value(world, "sluice_sampled_tokens_total{engine=\"http://127.0.0.1:8080\"}") == 120);
    assert_true(value(world, "sluice_prompt_tokens_total{engine=\"http://127.0.0.1:8080\"}") == 900);
    assert_true(value(world, "sluice_cached_tokens_total{engine=\"http://127.0.0.1:8080\"}") == 800);
    assert_true(value(world, "sluice_engine_call_seconds_count{engine=\"http://127.0.0.1:8080\"}") == 3);
    assert_true(value(world, "sluice_engine_call_seconds_sum{engine=\"http://127.0.0.1:8080\"}") == 1.5);
    assert_true(value(world, "sluice_engine_call_seconds_bucket{engine=\"http://127.0.0.1:8080\",le=\"1.0\"}") == 2);
    assert_true(value(world, "sluice_tool_seconds_count{tool=\"bash\"}") == 2);
    assert_true(value(world, "sluice_sandbox_start_seconds_sum{kind=\"overlay-tmpfs\"}") == 0.03);
    assert_true(value(world, "sluice_traces_total{reason=\"first\"}") == 1);
    assert_true(value(world, "sluice_traces_total{reason=\"cut\"}") == 2);
    assert_true(value(world, "sluice_stage_seconds_count{stage=\"run\"}") == 1);
    assert_true(value(world, "sluice_stage_seconds_sum{stage=\"run\"}") == 3);
    assert_false(has(world, "unknown\"} 3"));
    world_close(world);
}

static void an_older_worker_tells_nothing_and_nothing_is_counted(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "ok");
    assert_true(sum_of(world, "sluice_turns_total") == 0);
    assert_true(value(world, "sluice_stage_seconds_count{stage=\"run\"}") == 1);
    assert_false(has(world, "sluice_tool_seconds_count"));
    world_close(world);
}

static void failed_attempts_count_and_say_why_they_were_made_again(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_result_with(world, "r1", "run:g/0", token_of(world, "run:g/0"), "infra", spent);
    assert_true(value(world, "sluice_jobs_handed_out_again_total{stage=\"run\",why=\"infra\"}") == 1);
    assert_true(value(world, "sluice_turns_total{engine=\"unknown\"}") == 3);
    world_wait(world, 60000);
    world_beat(world, "r1", "run", 1, NULL);
    world_break_lane(world, "r1");
    assert_true(value(world, "sluice_workers_lost_total{stage=\"run\",why=\"lane-broke\"}") == 1);
    assert_true(value(world, "sluice_jobs_handed_out_again_total{stage=\"run\",why=\"worker-lost\"}") == 1);
    world_beat(world, "r2", "run", 1, NULL);
    world_result(world, "r2", "run:g/0", token_of(world, "run:g/0"), "cancelled");
    assert_true(value(world, "sluice_jobs_handed_out_again_total{stage=\"run\",why=\"returned\"}") == 1);
    world_close(world);
}

static void waits_are_counted_from_the_queue_to_the_worker(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    world_submit(world, "g", 1);
    world_wait(world, 2000);
    world_beat(world, "i1", "init", 1, NULL);
    assert_true(value(world, "sluice_queue_seconds_sum{stage=\"init\"}") == 2);
    world_engine(world, MSG_engine_remove, "http://127.0.0.1:8080");
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok");
    world_beat(world, "r1", "run", 1, NULL);
    world_wait(world, 3000); /* blocked, without a break in its wait */
    world_beat(world, "r1", "run", 1, NULL);
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    expect_job(world, "r1", "run:g/0");
    assert_true(value(world, "sluice_queue_seconds_sum{stage=\"run\"}") == 3);
    assert_true(value(world, "sluice_queue_seconds_count{stage=\"run\"}") == 1);
    world_close(world);
}

static void rewards_are_by_stream_and_more_streams_than_fit_are_the_others(void **state)
{
    (void)state;
    struct world *world = world_open();
    char group[16], stream[16], job[32];
    world_beat(world, "i1", "init", 64, NULL);
    world_beat(world, "r1", "run", 64, NULL);
    world_beat(world, "e1", "eval", 64, NULL);
    for (int i = 0; i < 34; i++) {
        snprintf(group, sizeof(group), "g%d", i);
        snprintf(stream, sizeof(stream), "s%d", i);
        world_submit_task(world, group, stream, 1, "{}");
        snprintf(job, sizeof(job), "init:%s", group);
        world_result(world, "i1", job, token_of(world, job), "ok");
        snprintf(job, sizeof(job), "run:%s/0", group);
        world_result(world, "r1", job, token_of(world, job), "ok");
        snprintf(job, sizeof(job), "eval:%s/0", group);
        world_reward(world, "e1", job, token_of(world, job), 0.25);
    }
    assert_true(value(world, "sluice_reward_count{stream=\"s0\"}") == 1);
    assert_true(value(world, "sluice_reward_bucket{stream=\"s31\",le=\"0.2\"}") == 0);
    assert_true(value(world, "sluice_reward_bucket{stream=\"s31\",le=\"0.3\"}") == 1);
    assert_false(has(world, "s32"));
    assert_true(value(world, "sluice_reward_sum{stream=\"other\"}") == 0.5);
    assert_true(value(world, "sluice_rollouts_ended_total{outcome=\"ok\",trainable=\"true\"}") == 34);
    assert_true(value(world, "sluice_rollouts_ended_total{outcome=\"ok\",trainable=\"false\"}") == 0);
    world_submit_task(world, "late", "s33", 2, "{}");
    assert_true(value(world, "sluice_stream_pending{stream=\"other\"}") == 2);
    world->now_ms += 25 * 3600 * 1000; /* a stream of yesterday gives its place */
    world_submit_task(world, "later", "new", 1, "{}");
    assert_true(value(world, "sluice_stream_pending{stream=\"new\"}") == 1);
    assert_true(sum_of(world, "sluice_stream_pending") == status_number(world, "rollouts", "live"));
    world_close(world);
}

static void an_admin_alone_is_answered(void **state)
{
    (void)state;
    struct world *world = world_open();
    const struct msg_metrics_get in = {.tag = 3, .openmetrics = true, .has_openmetrics = true};
    world->name = "alice";
    world_say(world, "trainer", MSG_metrics_get, &in);
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world->is_admin = true;
    world_say(world, "operator", MSG_metrics_get, &in);
    assert_non_null(strstr(expect_answer(world, MSG_metrics)->text, "# TYPE sluice_build info\n"));
    world_close(world);
}

/* With hostile names of streams, and before anything has happened. */
static void each_family_of_the_table_is_written_once_and_each_line_is_whole(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit_task(world, "g", "a\"\\b", 1, "{}");
    char line[256];
    for (enum metric_id id = 0; id < METRIC_COUNT; id++) {
        const struct family *family = &metric_get(id)->family;
        if (metric_get(id)->writer != METRIC_BY_BROKER)
            continue;
        snprintf(line, sizeof(line), "# TYPE %s ", family->name);
        const char *first = strstr(metrics_of(world), line);
        if (!first || strstr(first + 1, line))
            fail_msg("%s is not there once", family->name);
    }
    assert_true(has(world, "sluice_stream_pending{stream=\"a\\\"\\\\b\"} 1\n"));
    assert_true(has(world, "sluice_health{state=\"down\"} 1\n"));
    assert_true(sum_of(world, "sluice_health") == 1);
    assert_true(value(world, "sluice_epoch") == 3);
    assert_int_equal(text[strlen(text) - 1], '\n');
    world_close(world);
}

/* So what is written stays as small, and as quick, as it was. */
static void ten_thousand_workers_are_counted_and_not_listed(void **state)
{
    (void)state;
    enum { WORKERS = 10002 };
    static const char *const stages[] = {"init", "run", "eval"};
    struct world *world = world_open();
    const struct caller caller = {.lane_connects = false};
    const size_t before = strlen(metrics_of(world));
    for (int i = 0; i < WORKERS; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%d", i);
        struct msg_worker_beat in = {.worker = TEXT(id),
                                     .stage = TEXT(stages[i % 3]),
                                     .slots = 4,
                                     .lane = TEXT("tcp://10.0.0.7:20417"),
                                     .host = TEXT("node7"),
                                     .progress = 1,
                                     .draining = i % 6 == 0};
        core_handle(world->core, world->now_ms, WALL_MS, &caller, MSG_worker_beat, &in, NULL, 0);
        core_effects_clear(world->core);
    }
    assert_true(sum_of(world, "sluice_workers") == WORKERS);
    assert_true(value(world, "sluice_workers{stage=\"init\",state=\"draining\"}") == WORKERS / 6);
    assert_true(value(world, "sluice_slots{stage=\"init\"}") == WORKERS / 6 * 4);
    assert_true(value(world, "sluice_slots{stage=\"run\"}") == WORKERS / 3 * 4);
    assert_true(value(world, "sluice_slots_free{stage=\"run\"}") == WORKERS / 3 * 4);
    assert_true(strlen(metrics_of(world)) < before + 64); /* numbers have more digits */
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rollouts_are_where_they_are),
        cmocka_unit_test(a_results_numbers_are_counted_once_however_often_it_is_sent),
        cmocka_unit_test(an_older_worker_tells_nothing_and_nothing_is_counted),
        cmocka_unit_test(failed_attempts_count_and_say_why_they_were_made_again),
        cmocka_unit_test(waits_are_counted_from_the_queue_to_the_worker),
        cmocka_unit_test(rewards_are_by_stream_and_more_streams_than_fit_are_the_others),
        cmocka_unit_test(an_admin_alone_is_answered),
        cmocka_unit_test(ten_thousand_workers_are_counted_and_not_listed),
        cmocka_unit_test(each_family_of_the_table_is_written_once_and_each_line_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
