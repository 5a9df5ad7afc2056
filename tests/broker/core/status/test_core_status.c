/* status.get: what it counts and what it advises. */
#include "tests/broker/core/core_world.h"

#include <jansson.h>

static json_t *status_of(struct world *world)
{
    struct buffer out = {0};
    assert_true(core_status(world->core, world->now_ms, &out));
    json_t *status = json_loadb((const char *)out.data, out.len, 0, NULL);
    assert_non_null(status);
    buffer_finish(&out);
    return status;
}

static json_int_t number_in(json_t *status, const char *part, const char *stage, const char *name)
{
    json_t *object = json_object_get(status, part);
    json_t *value = json_object_get(stage ? json_object_get(object, stage) : object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static bool advises(json_t *status, const char *words)
{
    size_t i;
    json_t *sentence;
    json_array_foreach(json_object_get(status, "advice"), i,
                       sentence) if (strstr(json_string_value(sentence), words)) return true;
    return false;
}

static void status_counts_what_there_is_and_says_what_is_missing(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    world_beat(world, "i1", "init", 4, NULL);
    world_submit(world, "g", 3);
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok");
    world_cancel(world, "g/0", NULL, NULL);
    world->now_ms += 250;
    json_t *status = status_of(world);
    assert_int_equal(json_integer_value(json_object_get(status, "epoch")), 3);
    assert_int_equal(json_integer_value(json_object_get(status, "uptime_ms")), 250);
    assert_int_equal(number_in(status, "rollouts", NULL, "accepted"), 3);
    assert_int_equal(number_in(status, "rollouts", NULL, "live"), 2);
    assert_int_equal(number_in(status, "rollouts", NULL, "cancelled"), 1);
    assert_int_equal(number_in(status, "stages", "run", "queued"), 2);
    assert_int_equal(number_in(status, "stages", "init", "free"), 4);
    assert_int_equal(number_in(status, "counters", NULL, "dispatched"), 1);
    assert_int_equal(json_array_size(json_object_get(status, "workers")), 1);
    assert_int_equal(json_array_size(json_object_get(status, "engines")), 1);
    assert_int_equal(json_array_size(json_object_get(status, "streams")), 1);
    assert_true(advises(status, "no run worker is connected, and jobs wait for one: "
                                "sluice worker run --broker URL"));
    assert_false(advises(status, "no init worker"));
    json_decref(status);
    world_close(world);
}

static void status_get_is_answered_and_advises_on_engines(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    world_reach_run(world, "g", 2);
    world_engine(world, MSG_engine_remove, "http://127.0.0.1:8080");
    world_beat(world, "r1", "run", 4, NULL);
    struct msg_status_get in = {.tag = 14};
    world_say(world, "operator", MSG_status_get, &in);
    expect_answer(world, MSG_status);
    json_t *status = status_of(world);
    assert_true(advises(status, "2 jobs need an engine"));
    json_decref(status);
    world_close(world);
}

static void a_filling_queue_is_advised_on_in_steps(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.rollouts_max = 100;
    world_start(world);
    world_submit(world, "a", 74);
    json_t *status = status_of(world);
    assert_false(advises(status, "% of the rollouts"));
    json_decref(status);
    world_submit(world, "b", 2);
    status = status_of(world);
    assert_true(advises(status, "76 % of the rollouts that fit are live"));
    assert_false(advises(status, "will be refused"));
    json_decref(status);
    world_submit(world, "c", 20);
    status = status_of(world);
    assert_true(advises(status, "submits will be refused"));
    json_decref(status);
    world_close(world);
}

static void expect_bottleneck(struct world *world, const char *part, const char *why)
{
    json_t *status = status_of(world), *bottleneck = json_object_get(status, "bottleneck");
    if (!part) {
        assert_true(json_is_null(bottleneck));
    } else {
        assert_string_equal(json_string_value(json_object_get(bottleneck, "part")), part);
        assert_string_equal(json_string_value(json_object_get(bottleneck, "why")), why);
    }
    json_decref(status);
}

static void the_bottleneck_is_the_last_stage_that_work_waits_for(void **state)
{
    (void)state;
    struct world *world = world_open();
    char job[32];
    world_beat(world, "i1", "init", 1, NULL);
    expect_bottleneck(world, NULL, NULL);
    world_submit(world, "a", 4);
    expect_bottleneck(world, NULL, NULL); /* all slots are taken, but nothing waits */
    world_submit(world, "b", 4);
    expect_bottleneck(world, "init", "all 1 init slots are taken, and 1 jobs wait");
    world_beat(world, "r1", "run", 2, NULL);
    world_result(world, "i1", "init:a", token_of(world, "init:a"), "ok");
    expect_bottleneck(world, "run", "all 2 run slots are taken, and 2 jobs wait");
    world_beat(world, "e1", "eval", 1, NULL);
    for (int i = 0; i < 2; i++) {
        snprintf(job, sizeof(job), "run:a/%d", i);
        world_result(world, "r1", job, token_of(world, job), "ok");
    }
    expect_bottleneck(world, "eval", "all 1 eval slots are taken, and 1 jobs wait");
    world_close(world);
}

static void full_engines_are_the_bottleneck_and_not_the_run_slots(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.needs_engine = true;
    struct msg_engine_add add = {.tag = 3, .url = TEXT("http://127.0.0.1:8080"), .has_runs_max = true, .runs_max = 1};
    world_say(world, "operator", MSG_engine_add, &add);
    world_reach_run(world, "g", 3);
    world_beat(world, "r1", "run", 8, NULL);
    expect_bottleneck(world, "engines", "every engine has as many rollouts as it may, and 2 run jobs wait");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_counts_what_there_is_and_says_what_is_missing),
        cmocka_unit_test(status_get_is_answered_and_advises_on_engines),
        cmocka_unit_test(a_filling_queue_is_advised_on_in_steps),
        cmocka_unit_test(the_bottleneck_is_the_last_stage_that_work_waits_for),
        cmocka_unit_test(full_engines_are_the_bottleneck_and_not_the_run_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
