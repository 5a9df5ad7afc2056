/* What `sluice top` shows of a busy service, at several sizes; and its one line where there is no terminal. */
#include "tests/client/cli/top/top_world.h"

#include "client/cli/top/plain.h"

static void at_80_by_24_all_that_matters_is_there(void **state)
{
    struct world *world = *state;
    look(world, 80, 24);
    assert_int_equal(world->row_count, 24);
    for (size_t i = 0; i < world->row_count; i++)
        assert_true(screen_width(world->rows[i]) <= 80);
    if (getenv("SHOW"))
        for (size_t i = 0; i < world->row_count; i++)
            printf("|%s\n", world->rows[i]);
    expect_row(world, "health    degraded: the engine http://gpu2:8000 is set aside");
    expect_row(world, "          a worker was lost");
    expect_row(world, "waits for run: all 32 run slots are taken, and 120 jobs wait");
    expect_row(world, "rollouts  214 live of at most 100000; 607 have ended");
    expect_row(world, "ended     500 ok, 100 agent, 6 task, 1 infra, 0 cancelled");
    expect_row(world, "init      [##........] 2 of 8 slots        4 queued; 1 worker");
    expect_row(world, "run       [##########] 32 of 32 slots      120 queued, 3 delayed; 2 workers");
    expect_row(world, " Rollouts 3  Workers  Engines  Streams  Notices");
    expect_row(world, "Tab panel  Enter details  s sort: for  f filter  p pause  ? help  q quit");
}

static void rollouts_stand_by_age_with_what_each_waits_for(void **state)
{
    struct world *world = *state;
    look(world, 80, 24);
    const int old = row_with(world, "old/1"), middle = row_with(world, "middle/2"), young = row_with(world, "young/0");
    assert_true(old > 0 && old < middle && middle < young);
    assert_non_null(strstr(world->rows[old], "run   queued 2h05m"));
    assert_non_null(strstr(world->rows[old], "no engine is free"));
    assert_non_null(strstr(world->rows[young], "turn 2, bash"));
}

static void larger_windows_show_more_columns(void **state)
{
    struct world *world = *state;
    look(world, 80, 24);
    assert_int_equal(row_with(world, "http://gpu1:8000"), -1);
    look(world, 200, 50);
    expect_row(world, "http://gpu1:8000");
    expect_row(world, "run-node7-1");
    look(world, 39, 24);
    expect_row(world, "40 x 12 is needed");
    for (size_t columns = 1; columns < 130; columns++)
        for (size_t rows = 1; rows < 40; rows += 3) {
            look(world, columns, rows);
            for (size_t i = 0; i < world->row_count; i++)
                assert_true(screen_width(world->rows[i]) <= columns);
        }
}

static void rates_come_from_what_the_broker_counted(void **state)
{
    struct world *world = *state;
    json_t *later = parse(busy_status);
    json_object_set_new(later, "uptime_ms", json_integer(4010000));
    json_object_set_new(json_object_get(later, "rollouts"), "ok", json_integer(620));
    json_object_set_new(json_object_get(later, "rollouts"), "infra", json_integer(6));
    model_hear(&world->model, later, NULL, 70000);
    look(world, 80, 24);
    expect_row(world, "732 have ended, 12.5 a second");
    expect_row(world, "ended/s   12.0 ok, 0.0 agent, 0.0 task, 0.5 infra, 0.0 cancelled");
    model_hear_metrics(&world->model, "# TYPE sluice_sampled_tokens_total counter\n"
                                      "sluice_sampled_tokens_total{engine=\"a b\"} 1000\nother 7\n");
    assert_true(model_token_rate(&world->model) < 0); /* the samples before had none */
    json_t *restarted = parse(busy_status);
    json_object_set_new(restarted, "epoch", json_integer(4));
    json_object_set_new(restarted, "uptime_ms", json_integer(1000));
    model_hear(&world->model, restarted, NULL, 80000);
    assert_true(model_rate_of_all(&world->model) < 0);
}

static void tokens_are_those_of_all_engines(void **state)
{
    struct world *world = *state;
    json_t *later = parse(busy_status);
    model_hear_metrics(&world->model, "sluice_sampled_tokens_total{engine=\"a\"} 1000\n");
    json_object_set_new(later, "uptime_ms", json_integer(4002000));
    model_hear(&world->model, later, NULL, 62000);
    model_hear_metrics(&world->model, "sluice_sampled_tokens_total{engine=\"a\"} 1500\n"
                                      "sluice_sampled_tokens_total{engine=\"b 9\"} 1e3");
    look(world, 80, 24);
    expect_row(world, "have ended, 0.0 a second; 750 tokens/s");
}

static void a_broker_that_is_away_is_said_and_what_was_heard_stays(void **state)
{
    struct world *world = *state;
    model_miss(&world->model, "no broker answers at tcp://127.0.0.1:5750");
    look(world, 80, 24);
    expect_row(world, "no broker answers at tcp://127.0.0.1:5750; what is below is 5.0s old");
    expect_row(world, "old/1");
    model_hear(&world->model, parse(busy_status), parse(busy_list), 66000);
    look(world, 80, 24);
    assert_int_equal(row_with(world, "no broker answers"), -1);
    model_finish(&world->model);
    model_miss(&world->model, "no broker answers");
    look(world, 80, 24);
    expect_row(world, "no broker answers");
    model_hear(&world->model, parse("[]"), NULL, 0);
    look(world, 80, 24);
    expect_row(world, "the broker's status is not a JSON object");
}

static void text_of_others_is_tame(void **state)
{
    struct world *world = *state;
    json_t *list = parse(busy_list), *row = json_array_get(json_object_get(list, "rollouts"), 0);
    json_object_set_new(row, "rollout", json_string("\x1b[2J\x07wicked\n\x02\u202e/0"));
    json_object_set_new(row, "why", json_string("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e wide\x01"));
    model_hear(&world->model, parse(busy_status), list, 60000);
    for (int details = 0; details < 2; details++) {
        look(world, 80, 24);
        expect_row(world, "?[2J?wicked?"
                          "?"
                          "?/0");
        for (size_t i = 0; i < world->row_count; i++) {
            assert_null(strpbrk(world->rows[i], "\x1b\x07\x01\x02"));
            assert_true(screen_width(world->rows[i]) <= 80);
        }
        press(world, KEY_END);
        press(world, KEY_ENTER);
    }
}

static void without_a_terminal_it_is_one_line(void **state)
{
    struct world *world = *state;
    AUTO_BUFFER line = {0};
    plain_line(&world->model, "14:22:07", &line);
    buffer_append(&line, "", 1);
    assert_string_equal(
        (const char *)line.data,
        "14:22:07  degraded  214 live  init 4 queued 2/8  run 120 queued 32/32  eval 0 queued 1/8  ended 500 ok 100 "
        "agent 6 task 1 infra 0 cancelled  engines 1/2  waits for run: all 32 run slots are taken, and 120 jobs wait  "
        "! the engine http://gpu2:8000 is set aside  ! a worker was lost");
    model_miss(&world->model, "no broker\x1b[2J\nanswers");
    buffer_clear(&line);
    plain_line(&world->model, "14:22:09", &line);
    buffer_append(&line, "", 1);
    assert_string_equal((const char *)line.data, "14:22:09  no broker?[2J?answers");
}

static void a_status_of_another_version_is_shown_as_far_as_it_goes(void **state)
{
    struct world *world = *state;
    model_hear(&world->model, parse("{\"epoch\": 1, \"stages\": 7, \"rollouts\": [], \"bottleneck\": null}"),
               parse("{\"rollouts\": [3, {\"rollout\": 5, \"for_ms\": \"x\"}]}"), 60000);
    for (int panel = 0; panel < PANEL_COUNT; panel++) {
        look(world, 80, 24);
        expect_row(world, "health    not told");
        press(world, KEY_TAB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(at_80_by_24_all_that_matters_is_there),
        CASE(rollouts_stand_by_age_with_what_each_waits_for),
        CASE(larger_windows_show_more_columns),
        CASE(rates_come_from_what_the_broker_counted),
        CASE(tokens_are_those_of_all_engines),
        CASE(a_broker_that_is_away_is_said_and_what_was_heard_stays),
        CASE(text_of_others_is_tame),
        CASE(without_a_terminal_it_is_one_line),
        CASE(a_status_of_another_version_is_shown_as_far_as_it_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
