/* Whose message is next, over a made-up socket and by a made-up clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/io/turns.h"

enum { LINES_MAX = 1200, PART_US = 10000, WAIT_US_MAX = 100000, FIRST_FD = 10 };

struct letter {
    struct turn_inbound turn;
    size_t line;
    uint64_t number; /* among those of its connection */
};

/* A connection: what it has yet to send, and what became of what it sent. */
struct line {
    const char *peer;
    int64_t cost_us;
    size_t bytes;
    uint64_t left, sent, taken, refused, next;
    bool is_kept;    /* its letters may not be refused */
    uint32_t bundle; /* so many come as one, which is a letter then; 0: each alone */
};

/* A socket that gives its connections' letters in turn, one each, as libzmq does. */
struct world {
    struct turns *turns;
    struct line lines[LINES_MAX];
    size_t count, at;
    int64_t now_us;
    size_t waiting, waiting_bytes, most_bytes;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    world->turns = turns_create();
    *state = world;
    return world->turns ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    struct turn_inbound *turn;
    while ((turn = turns_take(world->turns, INT64_MAX)))
        if (turn->count == 0)
            free(container_of(turn, struct letter, turn));
    turns_destroy(&world->turns);
    free(world);
    return 0;
}

static struct line *connect_one(struct world *world, const char *peer, int64_t cost_us, size_t bytes, uint64_t letters)
{
    assert_true(world->count < LINES_MAX);
    struct line *line = &world->lines[world->count++];
    *line = (struct line){.peer = peer, .cost_us = cost_us, .bytes = bytes, .left = letters};
    return line;
}

static void connect_many(struct world *world, size_t count, const char *peer, int64_t cost_us, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        connect_one(world, peer, cost_us, bytes, UINT64_MAX);
}

static struct letter *read_one(struct world *world)
{
    for (size_t tried = 0; tried < world->count; tried++) {
        size_t at = world->at++ % world->count;
        struct line *line = &world->lines[at];
        if (!line->left)
            continue;
        line->left--;
        struct letter *letter = calloc(1, sizeof(*letter));
        *letter = (struct letter){.turn = {.bytes = line->bytes, .count = line->bundle ? line->bundle : 1},
                                  .line = at,
                                  .number = line->sent++};
        return letter;
    }
    return NULL;
}

/* True when nothing is left to read. */
static bool read_round(struct world *world)
{
    if (!turns_begin(world->turns, world->now_us))
        return false;
    while (turns_want(world->turns)) {
        struct letter *letter = read_one(world);
        if (!letter)
            return true;
        struct line *line = &world->lines[letter->line];
        int fd = FIRST_FD + (int)letter->line;
        if (turns_add(world->turns, slice_from_str(line->peer), fd, &letter->turn, line->is_kept)) {
            world->waiting += letter->turn.count;
            world->waiting_bytes += line->bytes;
            if (world->waiting_bytes > world->most_bytes)
                world->most_bytes = world->waiting_bytes;
            continue;
        }
        line->refused++;
        free(letter);
    }
    return false;
}

static void handle(struct world *world, struct turn_inbound *turn)
{
    struct letter *letter = container_of(turn, struct letter, turn);
    struct line *line = &world->lines[letter->line];
    assert_true(letter->number >= line->next); /* a connection's in the order it sent them */
    line->next = letter->number + (turn->count == 0);
    line->taken++;
    world->waiting--;
    world->now_us += line->cost_us;
    turns_charge(world->turns, line->cost_us);
    if (turn->count > 0)
        return;
    world->waiting_bytes -= line->bytes;
    free(letter);
}

/* As a cycle of the broker does it. */
static void cycle(struct world *world)
{
    int64_t end_us = world->now_us + PART_US;
    bool is_drained = read_round(world);
    for (size_t taken = 0; !taken || world->now_us < end_us;) {
        struct turn_inbound *turn = turns_take(world->turns, taken ? PART_US : INT64_MAX);
        if (turn) {
            handle(world, turn);
            taken++;
        } else if (is_drained || turns_count(world->turns)) {
            break;
        } else {
            is_drained = read_round(world);
        }
    }
    assert_int_equal(turns_count(world->turns), world->waiting);
}

static uint64_t taken_of(const struct world *world, const char *peer)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < world->count; i++)
        if (strcmp(world->lines[i].peer, peer) == 0)
            taken += world->lines[i].taken;
    return taken;
}

static uint64_t refused_of(const struct world *world, const char *peer)
{
    uint64_t refused = 0;
    for (size_t i = 0; i < world->count; i++)
        if (strcmp(world->lines[i].peer, peer) == 0)
            refused += world->lines[i].refused;
    return refused;
}

/* Asks; the most of the flood's letters, and of time, that went by before it was answered. */
static void ask(struct world *world, struct line *asker, uint64_t *most_letters, int64_t *most_us)
{
    uint64_t taken = asker->taken, flood = taken_of(world, "flood");
    int64_t asked_us = world->now_us;
    asker->left++;
    while (asker->taken == taken)
        cycle(world);
    uint64_t letters = taken_of(world, "flood") - flood;
    *most_letters = letters > *most_letters ? letters : *most_letters;
    *most_us = world->now_us - asked_us > *most_us ? world->now_us - asked_us : *most_us;
}

/* ---- tests ------------------------------------------------------------------------------------- */

static void between_anothers_letters_goes_one_slow_one_of_a_flood_whatever_connections_it_has(void **state)
{
    static const size_t connections[] = {1, 2, 24, 1000};
    for (size_t i = 0; i < sizeof(connections) / sizeof(*connections); i++) {
        struct world *world = *state;
        struct line *asker = connect_one(world, "other", 100, 50, 0);
        connect_many(world, connections[i], "flood", 40000, 1 << 20);
        uint64_t most_letters = 0;
        int64_t most_us = 0;
        for (int asked = 0; asked < 200; asked++) {
            ask(world, asker, &most_letters, &most_us);
            cycle(world); /* it thinks meanwhile */
        }
        assert_true(most_letters <= 1);
        assert_true(most_us < WAIT_US_MAX);
        assert_true(taken_of(world, "flood") >= 100); /* it has its share */
        assert_true(world->most_bytes <= PEER_WAITING_BYTES + (2 << 20));
        tear_down(state);
        set_up(state);
    }
}

static void quick_letters_in_any_number_leave_others_their_time(void **state)
{
    struct world *world = *state;
    struct line *asker = connect_one(world, "other", 100, 50, 0);
    uint64_t most_letters = 0;
    int64_t most_us = 0;
    connect_many(world, 1000, "flood", 1000, 100);
    for (int asked = 0; asked < 200; asked++) {
        ask(world, asker, &most_letters, &most_us);
        cycle(world);
    }
    assert_true(most_us < WAIT_US_MAX);
    assert_true(refused_of(world, "flood") > 0 && asker->refused == 0);
}

static void what_is_handled_as_fast_as_it_comes_is_never_refused(void **state)
{
    struct world *world = *state;
    connect_many(world, 450, "workers", 30, 300);
    for (int i = 0; i < 3000; i++)
        cycle(world);
    assert_true(taken_of(world, "workers") > 100000);
    assert_int_equal(refused_of(world, "workers"), 0);
}

static void one_connection_that_sends_without_a_pause_is_only_waited_for(void **state)
{
    struct world *world = *state;
    struct line *line = connect_one(world, "pipeline", 40000, 4 << 20, 500);
    while (line->taken < 500)
        cycle(world);
    assert_int_equal(line->refused, 0);
    assert_true(world->most_bytes <= 3 * (4 << 20));
}

static void all_that_was_read_is_handled_or_refused(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < 100; i++)
        connect_one(world, i % 3 ? "flood" : "other", 5000, 1 << 20, 10 + i);
    for (int i = 0; i < 3000; i++)
        cycle(world);
    assert_int_equal(turns_count(world->turns), 0);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(world->lines[i].taken + world->lines[i].refused, 10 + i);
}

static void who_sends_much_that_is_quick_has_a_turn_between_any_two_slow_ones(void **state)
{
    struct world *world = *state;
    connect_many(world, 50, "flood", 20000, 1000);
    connect_many(world, 3, "quick", 100, 1000);
    for (int i = 0; i < 4000; i++)
        cycle(world);
    assert_true(taken_of(world, "flood") > 1000);
    assert_true(taken_of(world, "quick") >= 3 * taken_of(world, "flood"));
    assert_int_equal(refused_of(world, "quick"), 0);
}

static void time_is_shared_by_what_letters_cost_and_not_by_their_number(void **state)
{
    struct world *world = *state;
    connect_many(world, 1, "slow", 8000, 1000);
    connect_many(world, 100, "quick", 100, 1000);
    for (int i = 0; i < 4000; i++)
        cycle(world);
    int64_t slow_us = (int64_t)taken_of(world, "slow") * 8000, quick_us = (int64_t)taken_of(world, "quick") * 100;
    assert_true(slow_us <= quick_us + 16000 && quick_us <= slow_us + 16000);
}

static void one_connection_is_not_refused_because_another_peer_asks(void **state)
{
    struct world *world = *state;
    struct line *asker = connect_one(world, "other", 100, 50, 0);
    struct line *pipeline = connect_one(world, "pipeline", 40000, 1 << 20, UINT64_MAX);
    uint64_t most_letters = 0;
    int64_t most_us = 0;
    for (int asked = 0; asked < 2000; asked++)
        ask(world, asker, &most_letters, &most_us);
    assert_int_equal(pipeline->refused, 0);
    assert_true(most_us < WAIT_US_MAX);
}

static void who_was_silent_has_saved_nothing_up(void **state)
{
    struct world *world = *state;
    connect_many(world, 4, "busy", 1000, 100);
    for (int i = 0; i < 1000; i++)
        cycle(world);
    connect_many(world, 4, "silent", 1000, 100);
    uint64_t busy = taken_of(world, "busy");
    for (int i = 0; i < 100; i++)
        cycle(world);
    uint64_t silent = taken_of(world, "silent");
    busy = taken_of(world, "busy") - busy;
    assert_true(silent + 20 > busy && busy + 20 > silent);
}

static void of_a_peer_the_connections_have_their_turns(void **state)
{
    struct world *world = *state;
    struct line *deep = connect_one(world, "one", 40000, 100, 0);
    struct turn_inbound *turn;
    struct letter *letter;
    for (int i = 0; i < 20; i++) { /* its own letters wait, twenty deep */
        letter = calloc(1, sizeof(*letter));
        letter->number = deep->sent++;
        letter->turn.count = 1;
        assert_true(turns_begin(world->turns, 0));
        assert_true(turns_add(world->turns, slice_from_str("one"), FIRST_FD, &letter->turn, false));
        world->waiting++, world->waiting_bytes += deep->bytes;
    }
    struct line *shallow = connect_one(world, "one", 100, 100, 1);
    cycle(world);
    cycle(world);
    assert_int_equal(shallow->taken, 1);
    while ((turn = turns_take(world->turns, INT64_MAX)))
        handle(world, turn);
    assert_int_equal(deep->taken, 20);
}

static void what_may_not_be_refused_waits_unread(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 300; i++)
        connect_one(world, "results", 1000, 1 << 20, 50)->is_kept = true;
    for (int i = 0; i < 2000; i++)
        cycle(world);
    assert_int_equal(taken_of(world, "results"), 300 * 50);
    assert_int_equal(refused_of(world, "results"), 0);
    assert_true(world->most_bytes > PEER_WAITING_BYTES && world->most_bytes <= WAITING_BYTES);
}

static void a_descriptor_that_another_peer_has_now_is_the_others(void **state)
{
    struct world *world = *state;
    struct letter *letters[4];
    static const char *const peers[] = {"gone", "gone", "gone", "come"};
    for (int i = 0; i < 4; i++) {
        letters[i] = calloc(1, sizeof(*letters[i]));
        letters[i]->turn.count = 1;
        assert_true(turns_begin(world->turns, 0));
        assert_true(turns_add(world->turns, slice_from_str(peers[i]), FIRST_FD, &letters[i]->turn, false));
    }
    static const int order[] = {0, 3, 1, 2};
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(turns_take(world->turns, INT64_MAX), &letters[order[i]]->turn);
        turns_charge(world->turns, 100);
        free(letters[order[i]]);
    }
}

static void what_comes_as_one_leaves_others_their_time_as_if_it_came_alone(void **state)
{
    struct world *world = *state;
    struct line *asker = connect_one(world, "other", 100, 50, 0);
    uint64_t most_letters = 0;
    int64_t most_us = 0;
    connect_many(world, 24, "flood", 20000, 1 << 16);
    for (size_t i = 1; i < world->count; i++)
        world->lines[i].bundle = 400;
    for (int asked = 0; asked < 200; asked++) {
        ask(world, asker, &most_letters, &most_us);
        cycle(world);
    }
    assert_true(most_letters <= 1);
    assert_true(most_us < WAIT_US_MAX);
    assert_true(taken_of(world, "flood") >= 100);
}

static void what_comes_as_one_counts_as_what_it_holds(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 2; i++)
        connect_one(world, "flood", 40000, 100, UINT64_MAX)->bundle = 1000;
    for (int i = 0; i < 20; i++)
        cycle(world);
    assert_true(refused_of(world, "flood") > 0);
    assert_true(turns_count(world->turns) < PEER_WAITING_MAX + 1000);
}

static void of_a_peer_a_row_of_what_came_as_one_goes_before_others_and_is_given_back(void **state)
{
    enum { SINGLES = 100 };
    struct world *world = *state;
    struct turn_inbound bundle = {.count = 400}, singles[SINGLES], *turn;
    assert_true(turns_begin(world->turns, 0));
    assert_true(turns_add(world->turns, slice_from_str("one"), FIRST_FD, &bundle, false));
    for (int i = 0; i < SINGLES; i++) {
        singles[i] = (struct turn_inbound){.count = 1};
        assert_true(turns_add(world->turns, slice_from_str("one"), FIRST_FD + 1, &singles[i], false));
    }
    assert_int_equal(turns_count(world->turns), 400 + SINGLES);
    for (int taken = 0, of_bundle = 0, row = 0; (turn = turns_take(world->turns, INT64_MAX));) {
        row = turn == &bundle ? row + 1 : 0;
        of_bundle += turn == &bundle;
        taken += turn != &bundle;
        assert_true(turn == &bundle || turn == &singles[taken - 1]);
        assert_true(row <= ROW || taken == SINGLES);
        assert_true(of_bundle <= taken + ROW || taken == SINGLES);
        assert_true(taken <= of_bundle + 1);
    }
    assert_int_equal(bundle.count, 0);
    assert_int_equal(turns_count(world->turns), 0);
}

static void behind_one_that_is_held_nothing_is_taken(void **state)
{
    struct world *world = *state;
    struct letter *letters[2] = {calloc(1, sizeof(struct letter)), calloc(1, sizeof(struct letter))};
    assert_false(turns_are_held(world->turns));
    assert_true(turns_begin(world->turns, 0));
    for (int i = 0; i < 2; i++) {
        letters[i]->turn.count = 1;
        assert_true(turns_add(world->turns, slice_from_str("one"), FIRST_FD, &letters[i]->turn, false));
    }
    letters[0]->turn.is_held = true;
    assert_true(turns_are_held(world->turns));
    assert_null(turns_take(world->turns, INT64_MAX));
    assert_int_equal(turns_count(world->turns), 2);
    letters[0]->turn.is_held = false;
    assert_false(turns_are_held(world->turns));
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(turns_take(world->turns, INT64_MAX), &letters[i]->turn);
        free(letters[i]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(between_anothers_letters_goes_one_slow_one_of_a_flood_whatever_connections_it_has),
        TEST(quick_letters_in_any_number_leave_others_their_time),
        TEST(what_is_handled_as_fast_as_it_comes_is_never_refused),
        TEST(one_connection_that_sends_without_a_pause_is_only_waited_for),
        TEST(all_that_was_read_is_handled_or_refused),
        TEST(one_connection_is_not_refused_because_another_peer_asks),
        TEST(who_sends_much_that_is_quick_has_a_turn_between_any_two_slow_ones),
        TEST(time_is_shared_by_what_letters_cost_and_not_by_their_number),
        TEST(who_was_silent_has_saved_nothing_up),
        TEST(of_a_peer_the_connections_have_their_turns),
        TEST(what_may_not_be_refused_waits_unread),
        TEST(a_descriptor_that_another_peer_has_now_is_the_others),
        TEST(behind_one_that_is_held_nothing_is_taken),
        TEST(what_comes_as_one_leaves_others_their_time_as_if_it_came_alone),
        TEST(what_comes_as_one_counts_as_what_it_holds),
        TEST(of_a_peer_a_row_of_what_came_as_one_goes_before_others_and_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
