/* The log's lines of what failed: each has one, until there are too many. */
#include "tests/broker/io/io_world.h"

#include "broker/io/line_budget.h"

enum { TEXT_SIZE = 1 << 18 };

static int set_up(void **state)
{
    static const char *const options[] = {"--log", "info", "--task-budget", "1", "--infra-budget", "1"};
    struct world *world = world_create();
    memcpy(world->options, options, sizeof(options));
    world->keeps_words = true;
    world_start(world);
    world_connect(world);
    *state = world;
    return 0;
}

/* What the broker wrote since it was ready; it has ended. */
static char *stop(struct world *world)
{
    char *text = malloc(TEXT_SIZE);
    assert_non_null(text);
    world_stop(world, SIGTERM);
    world_read_until(world->words, NULL, text, TEXT_SIZE);
    return text;
}

static unsigned count(const char *text, const char *words)
{
    unsigned found = 0;
    for (; (text = strstr(text, words)); text++)
        found++;
    return found;
}

/* The job that the worker holds ends like this. */
static void end_as(struct world *world, struct fake *fake, const char *outcome, const char *detail)
{
    struct msg_job_result result = {.worker = S(fake->id),
                                    .job = S(fake->held[0].job),
                                    .token = fake->held[0].token,
                                    .outcome = S(outcome),
                                    .detail = S(detail),
                                    .has_detail = true,
                                    .ms = 1};
    world_send(world, fake->push, MSG_job_result, &result);
    world_until(world, fake->held_count == 0);
}

static void a_rollout_that_ends_as_task_or_infra_has_a_line(void **state)
{
    struct world *world = *state;
    struct fake *init = fake_add(world, STAGE_INIT);
    init->allowance = 0;
    submit(world, "a", 1, false);
    world_until(world, init->held_count == 1);
    end_as(world, init, "task", "pip says \"no\"\nand fails");
    submit(world, "b", 1, false);
    world_until(world, init->held_count == 1);
    end_as(world, init, "infra", "the store is away");
    AUTO_FREE char *text = stop(world);
    assert_non_null(strstr(text, " broker info rollout.failed outcome=task rollout=a/0 stream=train seq=1 attempt=1 "
                                 "engine=\"\" why=\"pip says 'no' and fails\" unsaid=0\n"));
    assert_non_null(strstr(text, " broker warn rollout.failed outcome=infra rollout=b/0 stream=train seq=2 attempt=1 "
                                 "engine=\"\" why=\"the store is away\" unsaid=0\n"));
}

static void failures_by_the_thousand_have_no_line_each(void **state)
{
    struct world *world = *state;
    struct fake *init = fake_add(world, STAGE_INIT);
    init->allowance = 0;
    submit(world, "a", 1000, false);
    world_until(world, init->held_count == 1);
    end_as(world, init, "task", "the set-up fails");
    submit(world, "b", 1, false);
    world_until(world, init->held_count == 1);
    end_as(world, init, "infra", "the store is away");
    AUTO_FREE char *text = stop(world);
    assert_in_range(count(text, " rollout.failed outcome=task "), LINES_AT_ONCE, LINES_AT_ONCE + 5);
    assert_int_equal(count(text, " rollout.failed outcome=infra "), 1);
}

static void a_budget_of_lines_comes_back_with_time_and_tells_what_had_none(void **state)
{
    (void)state;
    struct line_budget budget = {0};
    int64_t now_ms = 5000;
    uint64_t unsaid = 1;
    for (unsigned i = 0; i < LINES_AT_ONCE; i++)
        assert_true(line_budget_take(&budget, now_ms, &unsaid) && unsaid == 0);
    for (unsigned i = 0; i < 1000000; i++)
        assert_false(line_budget_take(&budget, now_ms + LINE_EVERY_MS - 1, &unsaid));
    assert_true(line_budget_take(&budget, now_ms + LINE_EVERY_MS, &unsaid) && unsaid == 1000000);
    assert_false(line_budget_take(&budget, now_ms + LINE_EVERY_MS, &unsaid));
    now_ms += 86400000;
    for (unsigned i = 0; i < LINES_AT_ONCE; i++)
        assert_true(line_budget_take(&budget, now_ms, &unsaid) && unsaid == (i == 0));
    assert_false(line_budget_take(&budget, now_ms, &unsaid));
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rollout_that_ends_as_task_or_infra_has_a_line, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(failures_by_the_thousand_have_no_line_each, set_up, world_tear_down),
        cmocka_unit_test(a_budget_of_lines_comes_back_with_time_and_tells_what_had_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
