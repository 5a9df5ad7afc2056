/* Jobs that a worker is handed and never holds, over real sockets and a broker that is killed: they are counted all the
 * same. */
#include "tests/broker/io/io_world.h"

/* The worker forgets what it is handed. */
static uint64_t handed_to(struct fake *run)
{
    while (run->held_count > 0)
        fake_forget(run, S(run->held[0].job));
    return run->started;
}

/* Its detail once it has ended; else NULL. */
static const char *ended_with(struct world *world, const char *rollout)
{
    static char detail[1025];
    struct msg_rollout_get get = {.tag = 9, .rollout = S(rollout)};
    struct msg_trajectory got;
    world_send(world, world->client, MSG_rollout_get, &get);
    world_until(world, world_take_answer(world));
    if (!world_decode(&world->answer, MSG_trajectory, &got))
        return NULL;
    assert_true(slice_is(got.outcome, "infra"));
    snprintf(detail, sizeof(detail), "%.*s", SLICE_ARG(got.detail));
    return detail;
}

/*
 * Of a budget of 2 infra outcomes, it may go missing twice, and each further time is one: 4 times in all. The broker is
 * killed after the third, and what it had handed out then is handed out again.
 */
static void what_no_worker_holds_uses_up_its_budget_over_a_kill_of_the_broker(void **state)
{
    struct world *world = *state;
    fake_add(world, STAGE_INIT);
    struct fake *run = fake_add(world, STAGE_RUN);
    run->allowance = 0;
    submit(world, "a", 1, false);
    world_until(world, handed_to(run) == 3);
    world_stop(world, SIGKILL);
    world_start(world);
    world_until(world, handed_to(run) > 3 && ended_with(world, "a/0"));
    assert_non_null(strstr(ended_with(world, "a/0"), "it was handed out again and again, and no worker kept it"));
    assert_true(run->started == 4 || run->started == 5);
}

static int set_up(void **state)
{
    struct world *world = world_create();
    world->options[0] = "--infra-budget";
    world->options[1] = "2";
    world_start(world);
    world_connect(world);
    *state = world;
    return 0;
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_no_worker_holds_uses_up_its_budget_over_a_kill_of_the_broker, set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
