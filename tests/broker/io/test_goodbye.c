/* Workers that leave: what they say last is heard before the end of their lanes, whichever is read first. */
#include "tests/broker/io/io_world.h"

/* A worker in a context of its own, with which it goes. */
static struct fake *add_leaver(struct world *world, void **ret_context)
{
    void *others = world->context;
    world->context = *ret_context = zmq_ctx_new();
    struct fake *fake = fake_add(world, STAGE_INIT);
    world->context = others;
    return fake;
}

/* It drains, has no jobs, and goes: its last beat, and the end of its lane behind it. Both have left us on return. */
static void say_goodbye(struct world *world, struct fake *fake, void *context)
{
    const int linger_ms = WAIT_MS;
    const struct msg_worker_beat beat = {.worker = S(fake->id),
                                         .stage = S(stage_wire(fake->stage)),
                                         .slots = 8,
                                         .lane = S(fake->lane),
                                         .host = S("here"),
                                         .progress = (uint64_t)clock_ms(),
                                         .epoch = fake->epoch,
                                         .draining = true};
    fake->silent = true;
    world_send(world, fake->push, MSG_worker_beat, &beat);
    zmq_setsockopt(fake->push, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    zmq_close(fake->push);
    zmq_close(fake->pull);
    fake->push = fake->pull = NULL;
    zmq_ctx_term(context);
}

static bool status_says(struct world *world, const char *words)
{
    struct msg_status_get get = {.tag = 3};
    struct msg_status status;
    world_ask(world, MSG_status_get, &get, MSG_status, &status);
    return memmem(status.json.data, status.json.len, words, strlen(words));
}

/* The broker stands still meanwhile, and then finds both at once. */
static void a_worker_that_left_while_the_broker_stood_still_is_no_loss(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < FAKES_MAX; i++) {
        void *context;
        struct fake *fake = add_leaver(world, &context);
        world_until(world, fake->epoch && status_says(world, fake->id));
        kill(world->broker, SIGSTOP);
        say_goodbye(world, fake, context);
        kill(world->broker, SIGCONT);
        world_until(world, !status_says(world, fake->id) || status_says(world, "its lane broke"));
        assert_false(status_says(world, "its lane broke"));
    }
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_worker_that_left_while_the_broker_stood_still_is_no_loss, world_set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
