/* A run that is done again, over real sockets and a broker that is killed: the first run's results stay the first's. */
#include "tests/broker/io/io_world.h"

static int set_up(void **state)
{
    struct world *world = world_create();
    world->options[0] = "--infra-budget"; /* one evaluation that cannot read the layer is enough */
    world->options[1] = "1";
    world_start(world);
    world_connect(world);
    *state = world;
    return 0;
}

static bool status_says(struct world *world, const char *words)
{
    struct msg_status_get get = {.tag = 3};
    struct msg_status status;
    world_ask(world, MSG_status_get, &get, MSG_status, &status);
    return memmem(status.json.data, status.json.len, words, strlen(words));
}

static void say_result(struct world *world, struct fake *fake, uint64_t token, const char *outcome, double reward)
{
    bool is_ok = strcmp(outcome, "ok") == 0;
    struct msg_job_result result = {.worker = S(fake->id),
                                    .job = S("eval:a/0"),
                                    .token = token,
                                    .outcome = S(outcome),
                                    .ms = 1,
                                    .has_reward = is_ok,
                                    .reward = reward,
                                    .has_fault = !is_ok,
                                    .fault = S("store")};
    world_send(world, fake->push, MSG_job_result, &result);
}

/* What its beats say while it still keeps that result. */
static void say_held(struct world *world, struct fake *fake, uint64_t token)
{
    AUTO_BUFFER packed = {0};
    assert_true(jobs_append(&packed, S("eval:a/0"), token));
    struct msg_worker_beat beat = {.worker = S(fake->id),
                                   .stage = S("eval"),
                                   .slots = 1,
                                   .lane = S(fake->lane),
                                   .host = S("here"),
                                   .progress = 1,
                                   .draining = true,
                                   .jobs = {buffer_peek(&packed), 1}};
    world_send(world, fake->push, MSG_worker_beat, &beat);
}

static uint64_t token_of(const struct fake *fake) { return fake->held_count ? fake->held[0].token : 0; }

/* Cut off: its lane breaks, and what it found comes when the run has been done again. */
static uint64_t lose_first_evaluator(struct world *world, struct fake *first)
{
    world_until(world, token_of(first));
    uint64_t token = token_of(first);
    first->silent = true;
    fake_forget(first, S("eval:a/0"));
    zmq_close(first->pull);
    first->pull = NULL;
    return token;
}

static double reward_of(struct world *world, const char *rollout)
{
    struct msg_rollout_get get = {.tag = 4, .rollout = S(rollout)};
    struct msg_trajectory got;
    for (;;) {
        world_send(world, world->client, MSG_rollout_get, &get);
        world_until(world, world_take_answer(world));
        if (world_decode(&world->answer, MSG_trajectory, &got)) {
            assert_true(got.trainable && got.has_reward && slice_is(got.outcome, "ok"));
            return got.reward;
        }
    }
}

static void a_late_reward_of_the_first_run_is_not_the_seconds_nor_after_a_kill(void **state)
{
    struct world *world = *state;
    fake_add(world, STAGE_INIT);
    struct fake *run = fake_add(world, STAGE_RUN), *first = fake_add(world, STAGE_EVAL);
    first->allowance = 0; /* its job may come before the submit's answer */
    submit(world, "a", 1, false);
    uint64_t late = lose_first_evaluator(world, first);
    struct fake *second = fake_add(world, STAGE_EVAL);
    second->allowance = 0;
    world_until(world, token_of(second) && run->held_count == 0); /* its result is acknowledged, so it starts anew */
    say_result(world, second, token_of(second), "infra", 0);
    fake_forget(second, S("eval:a/0"));
    world_until(world, run->started == 2 && token_of(second));
    say_result(world, first, late, "ok", 99);
    world_until(world, status_says(world, "\"unissued\":1,"));
    world_stop(world, SIGKILL);
    world_start(world);
    say_result(world, first, late, "ok", 99);
    say_held(world, first, late);
    say_result(world, first, late, "ok", 99);
    world_until(world, status_says(world, "\"unissued\":2,"));
    world_until(world, status_says(world, "\"adopted\":1,")); /* the second's own */
    second->allowance = UINT64_MAX;
    assert_true(reward_of(world, "a/0") == 1.0);
    assert_int_equal(run->started, 2);
}

/* The broker is killed while the second run is at work: it goes on. */
static void a_run_that_is_done_again_is_adopted_over_a_kill(void **state)
{
    struct world *world = *state;
    fake_add(world, STAGE_INIT);
    struct fake *run = fake_add(world, STAGE_RUN), *eval = fake_add(world, STAGE_EVAL);
    run->allowance = 1;
    eval->allowance = 0;
    submit(world, "a", 1, false);
    world_until(world, token_of(eval) && run->held_count == 0);
    say_result(world, eval, token_of(eval), "infra", 0);
    fake_forget(eval, S("eval:a/0"));
    world_until(world, run->started == 2);
    assert_true(status_says(world, "{")); /* what is answered now leaves behind the commit of what left before */
    world_stop(world, SIGKILL);
    world_start(world);
    world_until(world, status_says(world, "\"adopted\":1,"));
    run->allowance = eval->allowance = UINT64_MAX;
    assert_true(reward_of(world, "a/0") == 1.0);
    assert_int_equal(run->started, 2);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_late_reward_of_the_first_run_is_not_the_seconds_nor_after_a_kill),
        TEST(a_run_that_is_done_again_is_adopted_over_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
