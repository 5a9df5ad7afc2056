/* What needs a handler, over real sockets and a broker that is killed: it waits,
 * and is given to whose beat offers it. */
#include "tests/broker/io/io_world.h"

static const char graded_task[] = "{\"task\":\"ask\",\"prompt\":\"?\",\"agent\":{\"kind\":\"none\"},"
                                  "\"eval\":{\"kind\":\"grade\"}}";

static bool status_says(struct world *world, const char *words)
{
    struct msg_status_get get = {.tag = 3};
    struct msg_status status;
    world_ask(world, MSG_status_get, &get, MSG_status, &status);
    return memmem(status.json.data, status.json.len, words, strlen(words));
}

/* Its warning. */
static const char *submit_graded(struct world *world, const char *group, bool known)
{
    static char warning[1025];
    struct msg_group_submit message = submit_of(world, group, 2);
    struct msg_group_accepted accepted;
    message.task = S(graded_task);
    world_ask(world, MSG_group_submit, &message, MSG_group_accepted, &accepted);
    assert_int_equal(accepted.known, known);
    snprintf(warning, sizeof(warning), "%.*s", SLICE_ARG(accepted.warning));
    return warning;
}

static bool has_ended(struct world *world, const char *rollout, double reward)
{
    struct msg_rollout_get get = {.tag = 9, .rollout = S(rollout)};
    struct msg_trajectory got;
    struct msg_rollout_state state;
    world_send(world, world->client, MSG_rollout_get, &get);
    world_until(world, world_take_answer(world));
    if (world_decode(&world->answer, MSG_trajectory, &got))
        return slice_is(got.outcome, "ok") && got.has_reward && got.reward == reward;
    assert_true(world_decode(&world->answer, MSG_rollout_state, &state));
    return false;
}

static void what_needs_a_handler_waits_for_it_over_a_kill_of_the_broker(void **state)
{
    struct world *world = *state;
    fake_add(world, STAGE_INIT);
    fake_add(world, STAGE_RUN);
    struct fake *eval = fake_add(world, STAGE_EVAL);
    eval->offers = "evaluator:graded@1 evaluator:-";
    world_until(world,
                status_says(world, "\"offers\":\"evaluator:graded@1\",\"offers_error\":\"evaluator:-: a name is"));
    assert_string_equal(submit_graded(world, "a", false),
                        "its rollouts will wait for the evaluator grade, which no eval worker offers: start one with "
                        "--handler; did you mean 'graded'?");
    world_until(world, status_says(world, "\"no_offer\":2"));
    submit(world, "b", 1, false); /* needs nothing */
    world_until(world, has_ended(world, "b/0", 1.0));
    assert_string_equal(eval->record, ""); /* and its evaluator does not read it */
    world_stop(world, SIGKILL);
    world_start(world);
    submit_graded(world, "a", true);
    world_until(world, status_says(world, "2 rollouts wait for the evaluator grade, which no eval worker offers"));
    assert_int_equal(eval->started, 1);
    eval->offers = "evaluator:graded@1 evaluator:grade@2";
    world_until(world, has_ended(world, "a/0", 1.0) && has_ended(world, "a/1", 1.0));
    assert_int_equal(eval->started, 3);
    assert_int_equal(strncmp(eval->record, "record a/", 9), 0);
    assert_true(status_says(world, "\"needs\":[]"));
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_needs_a_handler_waits_for_it_over_a_kill_of_the_broker, world_set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
