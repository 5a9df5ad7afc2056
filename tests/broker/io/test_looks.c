/* Looks into a real ledger for what clients' messages name. */
#include "tests/broker/ledger/ledger_world.h"

#include "broker/io/looks.h"
#include "broker/net/zmq_frame.h"
#include "schemas/messages/message.h"

struct letter {
    struct look look;
    struct turn_inbound turn;
    zmq_msg_t body;
};

static void write_letter(struct letter *letter, enum message_id id, const void *message)
{
    AUTO_BUFFER out = {0};
    struct refusal no;
    *letter = (struct letter){0};
    assert_true(message_encode(id, message, &out, &no));
    assert_true(zmq_frame_init_copy(&letter->body, buffer_peek(&out)));
}

static void write_submit(struct letter *letter, const char *group)
{
    const struct msg_group_submit submit = {
        .tag = 1, .group = S(group), .stream = S("train"), .samples = 1, .task = S(task_json)};
    write_letter(letter, MSG_group_submit, &submit);
}

static void write_get(struct letter *letter, const char *rollout)
{
    write_letter(letter, MSG_rollout_get, &(struct msg_rollout_get){.tag = 2, .rollout = S(rollout)});
}

static void begin(struct looks *looks, struct letter *letter, bool has_ledger)
{
    look_begin(&letter->look, looks, &letter->body, &letter->turn, has_ledger);
}

static void end(struct looks *looks, struct letter *letter)
{
    look_end(&letter->look, looks);
    look_end(&letter->look, looks); /* more than once is no more */
    zmq_msg_close(&letter->body);
}

static void what_names_a_group_is_held_until_it_was_looked_for(void **state)
{
    struct world *world = *state;
    struct looks looks = TAILQ_HEAD_INITIALIZER(looks);
    struct letter known, unknown, get, other;
    uint64_t hash;
    commit_one(world, group("known", "train", 1));
    write_submit(&known, "known");
    write_submit(&unknown, "unknown");
    write_get(&get, "known/0");
    write_letter(&other, MSG_status_get, &(struct msg_status_get){.tag = 3});
    begin(&looks, &known, false);
    begin(&looks, &unknown, false);
    begin(&looks, &get, true);
    begin(&looks, &other, false);
    assert_true(known.turn.is_held && unknown.turn.is_held);
    assert_false(get.turn.is_held); /* the ledger is in hand when it is read */
    assert_false(other.turn.is_held);
    assert_int_equal(looks_ahead(&looks, world->ledger, NULL), 0);
    assert_false(known.turn.is_held || unknown.turn.is_held);
    assert_true(known.look.was_found && get.look.was_found);
    assert_false(unknown.look.was_found);
    assert_int_equal(ledger_find_past(world->ledger, S("known"), &hash, NULL), 1);
    assert_int_equal(known.look.hash, hash);
    end(&looks, &known);
    commit_one(world, group("unknown", "train", 1));
    assert_int_equal(looks_ahead(&looks, world->ledger, NULL), 0); /* what still waits is looked for again */
    assert_true(unknown.look.was_found);
    end(&looks, &unknown);
    end(&looks, &get);
    end(&looks, &other);
    assert_true(TAILQ_EMPTY(&looks));
}

static void with_the_ledger_in_hand_nothing_is_held(void **state)
{
    struct looks looks = TAILQ_HEAD_INITIALIZER(looks);
    struct letter submit;
    (void)state;
    write_submit(&submit, "a");
    begin(&looks, &submit, false);
    assert_true(submit.turn.is_held);
    looks_release(&looks);
    assert_false(submit.turn.is_held);
    end(&looks, &submit);
}

/* It is refused when it has its turn: there is nothing to look for, and nothing to wait for. */
static void what_cannot_be_read_is_not_held_for_long(void **state)
{
    struct world *world = *state;
    static const char *const broken[] = {
        "\xacgroup.submit",                              /* and no map */
        "\xacgroup.submit\x81\xa5group\x07",             /* a number */
        "\xacgroup.submit\x81\xa5group\xd9\x60short",    /* cut off */
        "\xacgroup.submit\x82\xa3tag\x90\xa5group\xa1g", /* an array before it */
        "\xabrollout.get\x81\xa3tag\x01",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        struct looks looks = TAILQ_HEAD_INITIALIZER(looks);
        struct letter letter = {0};
        assert_true(zmq_frame_init_copy(&letter.body, S(broken[i])));
        begin(&looks, &letter, false);
        assert_int_equal(looks_ahead(&looks, world->ledger, NULL), 0);
        assert_false(letter.turn.is_held || letter.look.was_found);
        end(&looks, &letter);
    }
}

static void a_ledger_that_failed_is_said(void **state)
{
    struct world *world = *state;
    struct looks looks = TAILQ_HEAD_INITIALIZER(looks);
    struct letter submit;
    char path[128];
    write_submit(&submit, "a");
    begin(&looks, &submit, false);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ledger_look(world->ledger, NULL), -ESTALE);
    assert_true(looks_ahead(&looks, world->ledger, NULL) < 0);
    end(&looks, &submit);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_names_a_group_is_held_until_it_was_looked_for),
        TEST(with_the_ledger_in_hand_nothing_is_held),
        TEST(what_cannot_be_read_is_not_held_for_long),
        TEST(a_ledger_that_failed_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
