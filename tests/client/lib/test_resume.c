/* Going on: after a new start of the broker, of the trainer, and when one of them stays away. */
#include "tests/client/lib/stream_world.h"

#define CURSOR "/tmp/sluice-cursor-XXXXXX"

static void follow(struct fixture *f, const char *path)
{
    sluice_close(&f->client);
    f->client = sluice_connect(fake_url(f->broker));
    int failed = sluice_follow(f->client, "train", 0, path);
    if (failed)
        fail_msg("%s", sluice_error(f->client));
}

static void read_all(struct fixture *f, uint64_t count)
{
    fake_add_many(f->broker, count, 100);
    subscribe(f, 1);
    expect(f, 1, count);
}

/* At a name that is nobody's, past the fifth trajectory. */
static void save_cursor(struct fixture *f, char *path)
{
    assert_true(close(mkstemp(path)) == 0 && unlink(path) == 0);
    fake_add_many(f->broker, 5, 100);
    follow(f, path);
    expect(f, 1, 5);
    assert_int_equal(sluice_cursor_save(f->client), 0);
}

static void expect_stale(struct fixture *f) { assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ESTALE); }

static void a_restored_back_up_that_has_grown_again_is_stale(void **state)
{
    struct fixture *f = *state;
    read_all(f, 5);
    fake_restore(f->broker, 3, 10);
    expect_stale(f);
    assert_non_null(strstr(sluice_error(f->client), "the oldest number of this one is 1"));
    assert_int_equal(sluice_stream_first(f->client), 1);
    expect_stale(f);
    subscribe(f, sluice_stream_first(f->client));
    expect(f, 1, 13);
}

static void what_a_fetch_brought_waits_for_the_head_that_says_whose_it_is(void **state)
{
    struct fixture *f = *state;
    read_all(f, 5);
    fake_restore(f->broker, 3, 10);
    fake_hold_head(f->broker);
    expect_stale(f);
}

static void another_ledger_of_the_same_start_number_is_stale(void **state)
{
    struct fixture *f = *state;
    read_all(f, 5);
    fake_empty(f->broker, 13, 7);
    expect_stale(f);
    subscribe(f, sluice_stream_first(f->client));
    expect(f, 1, 13);
}

static void who_waits_for_what_an_emptied_ledger_does_not_know_is_told(void **state)
{
    struct fixture *f = *state;
    fake_empty(f->broker, 0, 7);
    subscribe(f, 1);
    expect_nothing(f);
    fake_empty(f->broker, 0, 0);
    expect_stale(f);
    assert_non_null(strstr(sluice_error(f->client), "number 0 of 0 accepted, and was at 3 and 0 of 7"));
}

static void an_older_back_up_that_knows_less_of_what_is_under_way_is_stale(void **state)
{
    struct fixture *f = *state;
    fake_empty(f->broker, 0, 7);
    subscribe(f, 1);
    expect_nothing(f);
    fake_empty(f->broker, 0, 6);
    fake_restart(f->broker, false);
    expect_stale(f);
}

static void a_stream_that_is_not_known_any_more_is_of_another_ledger(void **state)
{
    struct fixture *f = *state;
    read_all(f, 3);
    fake_name_stream(f->broker, "other");
    expect_stale(f);
}

static void a_stream_in_which_nothing_was_accepted_is_gone_on_with(void **state)
{
    struct fixture *f = *state;
    fake_empty(f->broker, 0, 0);
    subscribe(f, 1);
    expect_nothing(f);
    fake_empty(f->broker, 2, 0);
    expect(f, 1, 2);
}

static void a_cursor_of_another_ledger_with_the_same_start_number_is_stale(void **state)
{
    struct fixture *f = *state;
    char path[] = CURSOR;
    save_cursor(f, path);
    fake_empty(f->broker, 20, 7);
    follow(f, path);
    expect_stale(f);
    assert_int_equal(unlink(path), 0);
}

static void a_start_at_which_the_last_one_is_forgotten_is_gone_on_from(void **state)
{
    struct fixture *f = *state;
    read_all(f, 5);
    fake_forget(f->broker, 5);
    fake_restart(f->broker, false);
    fake_add_many(f->broker, 5, 100);
    expect(f, 6, 10);
}

/* ---- a position in a file ------------------------------------------------------------------- */

static void a_cursor_makes_a_new_process_go_on_with_the_one_in_hand(void **state)
{
    struct fixture *f = *state;
    char path[] = CURSOR;
    assert_true(close(mkstemp(path)) == 0 && unlink(path) == 0);
    fake_add_many(f->broker, 10, 100);
    follow(f, path);
    expect(f, 1, 1);
    follow(f, path);
    expect(f, 1, 4);
    follow(f, path);
    expect(f, 4, 6);
    assert_int_equal(sluice_cursor_save(f->client), 0);
    fake_restart(f->broker, false);
    follow(f, path);
    expect(f, 7, 10);
    assert_int_equal(unlink(path), 0);
}

static void a_cursor_into_a_ledger_that_is_gone_is_stale(void **state)
{
    struct fixture *f = *state;
    char path[] = CURSOR;
    save_cursor(f, path);
    fake_restore(f->broker, 3, 10);
    follow(f, path);
    expect_stale(f);
    fake_restore(f->broker, 3, 0);
    follow(f, path);
    expect_stale(f);
    assert_int_equal(unlink(path), 0);
}

static void a_cursor_that_is_none_of_this_stream_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"sluice_cursor\":1}",
        "{\"sluice_cursor\":1,\"stream\":\"other\",\"next\":2,\"epoch\":3,\"rollout\":\"g/0\"}",
        "{\"sluice_cursor\":2,\"stream\":\"train\",\"next\":2,\"epoch\":3,\"rollout\":\"g/0\"}",
        "{\"sluice_cursor\":1,\"stream\":\"train\",\"next\":-2,\"epoch\":3,\"rollout\":\"g/0\"}",
    };
    struct fixture *f = *state;
    char path[] = CURSOR;
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        FILE *file = fopen(path, "w");
        assert_true(fputs(texts[i], file) >= 0 && fclose(file) == 0);
        assert_int_equal(sluice_follow(f->client, "train", 0, path), -EINVAL);
        assert_non_null(strstr(sluice_error(f->client), "is not a cursor of stream train"));
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sluice_follow(f->client, "train", 0, "/"), -EISDIR);
}

static void a_cursor_that_cannot_be_written_is_told_before_anything_more_is_given(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 3, 100);
    follow(f, "/nowhere/at/all");
    expect(f, 1, 1);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ENOENT);
    assert_non_null(strstr(sluice_error(f->client), "cannot write the cursor /nowhere/at/all"));
}

/* ---- being alive ------------------------------------------------------------------------------- */

static void a_reader_renews_leases_by_itself(void **state)
{
    static const char task[] = "{\"task\":\"add\",\"kind\":\"noop\"}";
    struct fixture *f = *state;
    struct sluice_group group = {.group = "g", .stream = "train", .task_json = task, .samples = 1, .lease_ms = 1000};
    assert_int_equal(sluice_submit_many(f->client, &group, 1), 0);
    subscribe(f, 1);
    assert_int_equal(sluice_next(f->client, 1500, &f->got), -EAGAIN);
    assert_in_range(fake_count(f->broker, MSG_stream_renew), 3, 8);
}

static void a_broker_that_stays_away_is_told_after_patience(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    sluice_set_patience(f->client, 2500);
    fake_leave(f->broker);
    assert_int_equal(sluice_next(f->client, -1, &f->got), -ETIMEDOUT);
    assert_non_null(strstr(sluice_error(f->client), "no broker answers at tcp://"));
    fake_return(f->broker);
    fake_add(f->broker, false);
    expect(f, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_restored_back_up_that_has_grown_again_is_stale),
        CASE(what_a_fetch_brought_waits_for_the_head_that_says_whose_it_is),
        CASE(another_ledger_of_the_same_start_number_is_stale),
        CASE(who_waits_for_what_an_emptied_ledger_does_not_know_is_told),
        CASE(an_older_back_up_that_knows_less_of_what_is_under_way_is_stale),
        CASE(a_stream_that_is_not_known_any_more_is_of_another_ledger),
        CASE(a_stream_in_which_nothing_was_accepted_is_gone_on_with),
        CASE(a_cursor_of_another_ledger_with_the_same_start_number_is_stale),
        CASE(a_start_at_which_the_last_one_is_forgotten_is_gone_on_from),
        CASE(a_cursor_makes_a_new_process_go_on_with_the_one_in_hand),
        CASE(a_cursor_into_a_ledger_that_is_gone_is_stale),
        CASE(a_cursor_that_is_none_of_this_stream_is_refused),
        CASE(a_cursor_that_cannot_be_written_is_told_before_anything_more_is_given),
        CASE(a_reader_renews_leases_by_itself),
        CASE(a_broker_that_stays_away_is_told_after_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
