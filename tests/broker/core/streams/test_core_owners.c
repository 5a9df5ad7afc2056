/* Whose a stream is, and what others may not do with it. */
#include "tests/broker/core/core_world.h"

/* From now on this client speaks; NULL: an admin without a name. */
static void speak_as(struct world *world, const char *name, bool is_admin)
{
    world->name = name;
    world->is_admin = is_admin;
}

static bool may_read(struct world *world, const char *stream)
{
    struct caller caller = {TEXT("route"), TEXT(world->name), !world->name || world->is_admin};
    return core_may_read(world->core, &caller, TEXT(stream));
}

static void fetch(struct world *world, const char *stream)
{
    struct msg_stream_fetch in = {.tag = 8, .stream = TEXT(stream), .from = 1};
    world_say(world, "trainer", MSG_stream_fetch, &in);
}

/* A world in which alice has the stream `hers` with the group g, one of two rollouts ended. */
static struct world *alices_world(void)
{
    struct world *world = world_open();
    speak_as(world, "alice", false);
    world_submit_task(world, "g", "hers", 2, "{}");
    expect_answer(world, MSG_group_accepted);
    world_cancel(world, "g/0", NULL, NULL);
    return world;
}

static void a_stream_belongs_to_who_first_submits_to_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    speak_as(world, "alice", false);
    world_submit_task(world, "g", "hers", 1, "{}");
    assert_string_equal(expect(world, PERSIST_GROUP)->owner, "alice");
    speak_as(world, "bob", false);
    world_submit_task(world, "h", "hers", 1, "{}");
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "stream");
    assert_int_equal(seen_count(world, PERSIST_GROUP), 0);
    world_submit_task(world, "h", "his", 1, "{}");
    assert_string_equal(expect(world, PERSIST_GROUP)->owner, "bob");
    world_close(world);
}

static void what_belongs_to_another_cannot_be_fetched_acknowledged_got_or_cancelled(void **state)
{
    (void)state;
    struct world *world = alices_world();
    speak_as(world, "bob", false);
    fetch(world, "hers");
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "stream");
    world_ack(world, "hers", 1);
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "stream");
    world_get(world, "g/0");
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "rollout");
    world_get(world, "g/1");
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    world_cancel(world, "g/1", NULL, NULL);
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "rollout");
    world_cancel(world, NULL, "g", NULL);
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "group");
    world_cancel(world, NULL, NULL, "hers");
    assert_string_equal(expect_refused(world, REFUSAL_NOT_ALLOWED)->field, "stream");
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    speak_as(world, "alice", false);
    world_cancel(world, NULL, NULL, "hers");
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    world_close(world);
}

static void an_admin_may_do_what_the_owner_may_and_the_stream_stays_the_owners(void **state)
{
    (void)state;
    struct world *world = alices_world();
    speak_as(world, "root", true);
    assert_true(may_read(world, "hers"));
    fetch(world, "hers");
    expect(world, SEND_RANGE);
    world_submit_task(world, "h", "hers", 1, "{}");
    assert_string_equal(expect(world, PERSIST_GROUP)->owner, "alice");
    world_get(world, "g/0");
    expect(world, SEND_TRAJECTORY);
    world_ack(world, "hers", 1);
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    world_cancel(world, NULL, "g", NULL);
    assert_int_equal(expect_answer(world, MSG_done)->count, 1);
    speak_as(world, "alice", false);
    fetch(world, "hers");
    expect_refused(world, REFUSAL_FORGOTTEN); /* hers still, but for what the admin acknowledged */
    world_close(world);
}

static void a_group_id_that_another_client_took_is_taken_and_not_said_by_whom(void **state)
{
    (void)state;
    struct world *world = alices_world();
    speak_as(world, "bob", false);
    world_submit_task(world, "g", "his", 2, "{}");
    const struct seen *refused = expect_refused(world, REFUSAL_GROUP_EXISTS);
    assert_null(strstr(refused->text, "alice"));
    assert_null(strstr(refused->text, "hers"));
    world_close(world);
}

static void subscribing_makes_a_stream_ones_own_but_not_an_admins(void **state)
{
    (void)state;
    struct world *world = world_open();
    speak_as(world, "root", true);
    assert_true(may_read(world, "new"));
    speak_as(world, "alice", false);
    assert_true(may_read(world, "new"));
    speak_as(world, "bob", false);
    assert_false(may_read(world, "new"));
    fetch(world, "new");
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    assert_false(may_read(world, "no/name"));
    assert_false(may_read(world, ""));
    speak_as(world, "alice", false);
    world_submit_task(world, "g", "new", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void to_fetch_a_stream_that_nobody_has_does_not_make_it_ones_own(void **state)
{
    (void)state;
    struct world *world = world_open();
    speak_as(world, "bob", false);
    fetch(world, "new");
    const struct seen *range = expect(world, SEND_RANGE);
    assert_int_equal(range->head, 0);
    assert_int_equal(range->limit, 0); /* not even what another makes of it in the same cycle */
    speak_as(world, "alice", false);
    world_submit_task(world, "g", "new", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void where_nobody_has_a_name_everybody_may_everything(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit_task(world, "g", "train", 2, "{}");
    assert_string_equal(expect(world, PERSIST_GROUP)->owner, "");
    assert_true(may_read(world, "train"));
    assert_true(may_read(world, "else"));
    world_cancel(world, NULL, NULL, "train");
    assert_int_equal(expect_answer(world, MSG_done)->count, 2);
    world_close(world);
}

static void owners_are_known_again_after_a_restart(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    assert_true(core_restore_stream(world->core, TEXT("hers"), TEXT("alice"), 3, 2));
    speak_as(world, "bob", false);
    assert_false(may_read(world, "hers"));
    world_submit_task(world, "h", "hers", 1, "{}");
    expect_refused(world, REFUSAL_NOT_ALLOWED);
    speak_as(world, "alice", false);
    assert_true(may_read(world, "hers"));
    world_submit_task(world, "g", "hers", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void a_client_has_its_share_of_all_streams_and_no_more(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.client_percent = 1; /* 655 of 65,536 */
    world_start(world);
    speak_as(world, "alice", false);
    char name[32];
    for (unsigned i = 0; i < 655; i++) {
        snprintf(name, sizeof(name), "stream-%u", i);
        assert_true(may_read(world, name));
    }
    assert_false(may_read(world, "one-more"));
    assert_true(may_read(world, "stream-654"));
    world_submit_task(world, "g", "one-more", 1, "{}");
    assert_string_equal(expect_refused(world, REFUSAL_QUEUE_FULL)->field, "stream");
    speak_as(world, "bob", false);
    world_submit_task(world, "g", "one-more", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void a_stream_that_was_only_asked_for_is_free_once_nobody_listens(void **state)
{
    (void)state;
    struct world *world = world_open();
    speak_as(world, "alice", false);
    assert_true(may_read(world, "new"));
    speak_as(world, "bob", false);
    assert_false(may_read(world, "new"));
    core_nobody_reads(world->core, TEXT("new"));
    assert_true(may_read(world, "new"));
    world_submit_task(world, "g", "new", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    core_nobody_reads(world->core, TEXT("new")); /* one that was submitted to stays its owner's */
    speak_as(world, "alice", false);
    assert_false(may_read(world, "new"));
    core_nobody_reads(world->core, TEXT("unheard of"));
    world_close(world);
}

static void the_default_share_leaves_names_for_others(void **state)
{
    (void)state;
    struct world *world = world_open();
    char name[32];
    unsigned count = 0;
    speak_as(world, "mallory", false);
    for (snprintf(name, sizeof(name), "m-0"); may_read(world, name); snprintf(name, sizeof(name), "m-%u", count))
        count++;
    assert_int_equal(count, 65536 * 80 / 100);
    speak_as(world, "alice", false);
    assert_true(may_read(world, "mine"));
    world_submit_task(world, "g", "mine", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void where_nobody_has_a_name_one_may_use_all(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.rollouts_max = 4;
    world_start(world);
    world_submit_task(world, "g", "train", 4, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_belongs_to_who_first_submits_to_it),
        cmocka_unit_test(what_belongs_to_another_cannot_be_fetched_acknowledged_got_or_cancelled),
        cmocka_unit_test(an_admin_may_do_what_the_owner_may_and_the_stream_stays_the_owners),
        cmocka_unit_test(a_group_id_that_another_client_took_is_taken_and_not_said_by_whom),
        cmocka_unit_test(subscribing_makes_a_stream_ones_own_but_not_an_admins),
        cmocka_unit_test(to_fetch_a_stream_that_nobody_has_does_not_make_it_ones_own),
        cmocka_unit_test(where_nobody_has_a_name_everybody_may_everything),
        cmocka_unit_test(owners_are_known_again_after_a_restart),
        cmocka_unit_test(a_client_has_its_share_of_all_streams_and_no_more),
        cmocka_unit_test(a_stream_that_was_only_asked_for_is_free_once_nobody_listens),
        cmocka_unit_test(the_default_share_leaves_names_for_others),
        cmocka_unit_test(where_nobody_has_a_name_one_may_use_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
