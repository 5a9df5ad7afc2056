/* Groups of which nothing is left but that they were here: their ids are known for as long as the ledger lives. */
#include "tests/broker/io/io_world.h"

enum { REMEMBERED = 8, GROUPS = 200 };

static int set_up(void **state)
{
    struct world *world = world_create();
    world->options[0] = "--forgotten-max";
    world->options[1] = "8"; /* REMEMBERED */
    world_start(world);
    world_connect(world);
    *state = world;
    return 0;
}

static void name_group(char ret[32], unsigned i) { snprintf(ret, 32, "g%u", i); }

static void submit_all(struct world *world, bool known)
{
    for (unsigned i = 0; i < GROUPS; i++) {
        char id[32];
        name_group(id, i);
        submit(world, id, 2, known);
    }
}

static struct msg_stream_head head_of(struct world *world)
{
    struct msg_stream_head head;
    struct msg_stream_fetch fetch = {.tag = ++world->tag, .stream = S("train"), .from = 2 * GROUPS + 1};
    world_ask(world, MSG_stream_fetch, &fetch, MSG_stream_head, &head);
    return head;
}

/* All there are end and are acknowledged. */
static void end_all(struct world *world)
{
    struct msg_rollout_cancel cancel = {.tag = ++world->tag, .stream = S("train"), .has_stream = true};
    struct msg_stream_ack ack = {.stream = S("train"), .seq = 2 * GROUPS};
    struct msg_done done;
    world_ask(world, MSG_rollout_cancel, &cancel, MSG_done, &done);
    while (head_of(world).head < 2 * GROUPS)
        ;
    ack.tag = ++world->tag;
    world_ask(world, MSG_stream_ack, &ack, MSG_done, &done);
}

static void expect_group_exists(struct world *world, const struct msg_group_submit *message)
{
    struct msg_refused refused;
    world_ask(world, MSG_group_submit, message, MSG_refused, &refused);
    assert_true(slice_is(refused.reason, "group-exists"));
}

static void expect_other_content_refused(struct world *world, const char *id)
{
    struct msg_group_submit other = submit_of(world, id, 2);
    other.task = S("{\"task\":\"sub\",\"kind\":\"noop\"}");
    expect_group_exists(world, &other);
    struct msg_group_submit more = submit_of(world, id, 3);
    expect_group_exists(world, &more);
    struct msg_group_submit elsewhere = submit_of(world, id, 2);
    elsewhere.stream = S("other");
    expect_group_exists(world, &elsewhere);
}

static void what_is_submitted_again_when_all_was_acknowledged_does_nothing(void **state)
{
    struct world *world = *state;
    submit_all(world, false);
    end_all(world);
    submit_all(world, true); /* while they are swept, too */
    submit_all(world, true);
    assert_int_equal(head_of(world).pending, 0);
    for (unsigned i = 0; i < GROUPS; i += GROUPS - 1) { /* the first one, and the last */
        char id[32];
        name_group(id, i);
        expect_other_content_refused(world, id);
    }
    submit(world, "new", 2, false);
    assert_int_equal(head_of(world).pending, 2);
}

static void the_same_after_a_kill_and_from_a_backup(void **state)
{
    struct world *world = *state;
    char command[512];
    struct msg_done done;
    submit_all(world, false);
    end_all(world);
    world_stop(world, SIGKILL);
    world_start(world);
    submit_all(world, true);
    expect_other_content_refused(world, "g0");
    struct msg_ledger_backup request = {.tag = ++world->tag, .name = S("copy")};
    world_ask(world, MSG_ledger_backup, &request, MSG_done, &done);
    world_stop(world, SIGKILL);
    snprintf(command, sizeof(command), "cd %s && rm -f ledger.db* lock && cp backups/copy.db ledger.db", world->data);
    assert_int_equal(system(command), 0);
    world_start(world);
    submit_all(world, true);
    expect_other_content_refused(world, "g0");
    assert_int_equal(head_of(world).pending, 0);
}

/* Sent together, they are read in one cycle, the second before the first is on disk. */
static void one_id_twice_in_a_cycle_is_one_group(void **state)
{
    struct world *world = *state;
    struct msg_group_accepted accepted;
    unsigned known = 0;
    for (unsigned i = 0; i < 2 * GROUPS; i++) {
        char id[32];
        name_group(id, i / 2);
        struct msg_group_submit message = submit_of(world, id, 2);
        world_send(world, world->client, MSG_group_submit, &message);
    }
    for (unsigned i = 0; i < 2 * GROUPS; i++) {
        world_expect(world, MSG_group_accepted, &accepted);
        assert_int_equal(accepted.known, i % 2);
        known += accepted.known;
    }
    assert_int_equal(known, GROUPS);
    assert_int_equal(head_of(world).pending, 2 * GROUPS);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)
        TEST(what_is_submitted_again_when_all_was_acknowledged_does_nothing),
        TEST(the_same_after_a_kill_and_from_a_backup),
        TEST(one_id_twice_in_a_cycle_is_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
