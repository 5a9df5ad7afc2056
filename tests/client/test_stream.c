#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/sluice.h"
#include "tests/client/fake_broker.h"

enum { SOON_MS = 20000, NOT_SO_SOON_MS = 100 };

struct fixture {
    struct fake_broker *broker;
    struct sluice_client *client;
    const struct sluice_trajectory *got;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->broker = fake_start();
    f->client = sluice_connect(fake_url(f->broker));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sluice_close(&f->client);
    fake_stop(&f->broker);
    free(f);
    return 0;
}

static void subscribe(struct fixture *f, uint64_t from)
{
    int failed = sluice_subscribe(f->client, "train", from);
    if (failed)
        fail_msg("%s", sluice_error(f->client));
    fake_await_subscriber(f->broker);
}

static void expect(struct fixture *f, uint64_t first, uint64_t last)
{
    for (uint64_t seq = first; seq <= last; seq++) {
        int failed = sluice_next(f->client, SOON_MS, &f->got);
        if (failed)
            fail_msg("number %llu: %s", (unsigned long long)seq, sluice_error(f->client));
        assert_int_equal(f->got->seq, seq);
    }
}

static void expect_nothing(struct fixture *f)
{
    assert_int_equal(sluice_next(f->client, NOT_SO_SOON_MS, &f->got), -EAGAIN);
    assert_null(f->got);
}

static void trajectories_come_once_and_in_order(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 3, 100);
    subscribe(f, 1);
    expect(f, 1, 3);
    fake_add_many(f->broker, 3, 0);
    expect(f, 4, 6);
    expect_nothing(f);
}

static void a_trajectory_shows_its_message_and_its_record(void **state)
{
    struct fixture *f = *state;
    fake_add(f->broker, false);
    fake_add(f->broker, false);
    subscribe(f, 2);
    expect(f, 2, 2);
    assert_string_equal(f->got->stream, "train");
    assert_string_equal(f->got->rollout, "g/1");
    assert_string_equal(f->got->group, "g");
    assert_string_equal(f->got->outcome, "ok");
    assert_string_equal(f->got->detail, "");
    assert_string_equal(f->got->agent, "chat");
    assert_string_equal(f->got->logprobs_mode, "raw");
    assert_true(f->got->has_reward && f->got->reward == 1.0 && f->got->trainable);
    assert_int_equal(f->got->trace_count, 1);
    const struct sluice_trace *trace = f->got->traces;
    assert_int_equal(trace->token_count, 3);
    assert_int_equal(trace->token_ids[2], 103);
    assert_int_equal(trace->mask[0], 0);
    assert_int_equal(trace->mask[1], 1);
    assert_true(trace->logprobs[0] == 0.0f && trace->logprobs[1] == -0.5f);
    assert_int_equal(trace->turn_count, 2);
    assert_string_equal(trace->turns[1].role, "assistant");
    assert_int_equal(trace->turns[1].offset, 1);
    assert_int_equal(f->got->message_count, 2);
    assert_string_equal(f->got->messages[1].content, "2");
}

static void a_duplicate_is_dropped(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_add(f->broker, true);
    fake_publish(f->broker, "t/train/", "train", 1);
    fake_add(f->broker, true);
    fake_publish(f->broker, "t/train/", "train", 1);
    fake_add(f->broker, true);
    expect(f, 1, 3);
    expect_nothing(f);
}

static void a_gap_is_fetched(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_add(f->broker, true);
    fake_add(f->broker, false);
    fake_add(f->broker, false);
    fake_add(f->broker, true);
    expect(f, 1, 4);
    fake_add(f->broker, true);
    expect(f, 5, 5);
    expect_nothing(f);
}

static void a_lost_last_message_is_noticed_by_the_head(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_add(f->broker, true);
    expect(f, 1, 1);
    fake_add(f->broker, false);
    expect_nothing(f);
    fake_publish_head(f->broker);
    expect(f, 2, 2);
    uint64_t head, pending;
    sluice_stream_state(f->client, &head, &pending);
    assert_int_equal(head, 2);
    assert_int_equal(pending, 7);
}

static void a_silent_feed_makes_the_client_ask(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_add(f->broker, false);
    expect(f, 1, 1);
}

static void zero_starts_at_the_oldest_kept(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 5, 100);
    fake_forget(f->broker, 3);
    subscribe(f, 0);
    expect(f, 4, 5);
}

static void a_forgotten_number_is_an_error_that_says_so(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 5, 100);
    fake_forget(f->broker, 3);
    subscribe(f, 2);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ENODATA);
    assert_string_equal(sluice_error(f->client),
                        "stream train: number 2 is no longer kept; the oldest is 4");
    assert_int_equal(sluice_stream_first(f->client), 4);
    /* Another call between does not lose the sentence, nor the error. */
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ENODATA);
    assert_int_equal(sluice_subscribe(f->client, "train", 4), 0);
    expect(f, 4, 5);
}

static void what_is_forgotten_while_reading_is_told_with_the_oldest_that_is_kept(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 200, 100);
    subscribe(f, 1);
    expect(f, 1, 64);
    fake_forget(f->broker, 100);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ENODATA);
    assert_string_equal(sluice_error(f->client),
                        "stream train: number 65 is no longer kept; the oldest is 101");
    assert_int_equal(sluice_stream_first(f->client), 101);
}

static void a_stream_that_does_not_exist_yet_begins_later(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 0);
    expect_nothing(f);
    fake_add_many(f->broker, 2, 0);
    expect(f, 1, 2);
}

static void reading_may_start_beyond_the_end(void **state)
{
    struct fixture *f = *state;
    fake_add(f->broker, false);
    subscribe(f, 3);
    fake_add(f->broker, true);
    fake_add(f->broker, true);
    expect(f, 3, 3);
}

static void reading_goes_on_across_restarts_of_the_broker(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    for (uint64_t i = 0; i < 3; i++) {
        fake_add(f->broker, true);
        expect(f, 2 * i + 1, 2 * i + 1);
        fake_restart(f->broker, false);
        fake_add(f->broker, true);
        expect(f, 2 * i + 2, 2 * i + 2);
    }
}

static void a_broker_that_is_away_is_waited_for(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_leave(f->broker);
    expect_nothing(f);
    fake_add(f->broker, false);
    fake_return(f->broker);
    expect(f, 1, 1);
}

static void an_unanswered_fetch_is_sent_again(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 2, 100);
    subscribe(f, 1);
    fake_ignore(f->broker, 1);
    expect(f, 1, 2);
    assert_int_equal(fake_count(f->broker, MSG_stream_fetch), 3);
}

static void a_shorter_ledger_is_stale(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 3, 100);
    subscribe(f, 1);
    expect(f, 1, 3);
    fake_restart(f->broker, true);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ESTALE);
    assert_non_null(strstr(sluice_error(f->client), "another ledger"));
}

static void a_restored_back_up_that_has_grown_again_is_stale(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 5, 100);
    subscribe(f, 1);
    expect(f, 1, 5);
    fake_restore(f->broker, 3, 10);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ESTALE);
    assert_non_null(strstr(sluice_error(f->client), "the oldest number of this one is 1"));
    assert_int_equal(sluice_stream_first(f->client), 1);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ESTALE);
    subscribe(f, sluice_stream_first(f->client));
    expect(f, 1, 13);
}

static void a_start_at_which_the_last_one_is_forgotten_is_gone_on_from(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 5, 100);
    subscribe(f, 1);
    expect(f, 1, 5);
    fake_forget(f->broker, 5);
    fake_restart(f->broker, false);
    fake_add_many(f->broker, 5, 100);
    expect(f, 6, 10);
}

/* ---- a position in a file ------------------------------------------------------------------- */

static void follow(struct fixture *f, const char *path)
{
    sluice_close(&f->client);
    f->client = sluice_connect(fake_url(f->broker));
    int failed = sluice_follow(f->client, "train", 0, path);
    if (failed)
        fail_msg("%s", sluice_error(f->client));
}

static void a_cursor_makes_a_new_process_go_on_with_the_one_in_hand(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/sluice-cursor-XXXXXX";
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
    char path[] = "/tmp/sluice-cursor-XXXXXX";
    assert_true(close(mkstemp(path)) == 0 && unlink(path) == 0);
    fake_add_many(f->broker, 5, 100);
    follow(f, path);
    expect(f, 1, 5);
    assert_int_equal(sluice_cursor_save(f->client), 0);
    fake_restore(f->broker, 3, 10);
    follow(f, path);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ESTALE);
    fake_restore(f->broker, 3, 0);
    follow(f, path);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -ESTALE);
    assert_int_equal(unlink(path), 0);
}

static void a_cursor_that_is_none_of_this_stream_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{\"sluice_cursor\":1}",
        "{\"sluice_cursor\":1,\"stream\":\"other\",\"next\":2,\"epoch\":3,\"rollout\":\"g/0\"}",
        "{\"sluice_cursor\":2,\"stream\":\"train\",\"next\":2,\"epoch\":3,\"rollout\":\"g/0\"}",
        "{\"sluice_cursor\":1,\"stream\":\"train\",\"next\":-2,\"epoch\":3,\"rollout\":\"g/0\"}",
    };
    struct fixture *f = *state;
    char path[] = "/tmp/sluice-cursor-XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        FILE *file = fopen(path, "w");
        assert_true(fputs(texts[i], file) >= 0 && fclose(file) == 0);
        assert_int_equal(sluice_follow(f->client, "train", 0, path), -EINVAL);
        assert_non_null(strstr(sluice_error(f->client), "is no cursor of stream train"));
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
    struct sluice_group group = {.group = "g",
                                 .stream = "train",
                                 .task_json = task,
                                 .samples = 1,
                                 .lease_ms = 1000};
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

static void a_stream_whose_name_begins_the_same_is_not_mixed_in(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_add(f->broker, false);
    fake_publish(f->broker, "t/train2/", "train2", 1);
    fake_publish(f->broker, "t/train/", "train2", 1);
    fake_publish(f->broker, "t/train2/", "train", 1);
    expect_nothing(f);
    fake_publish(f->broker, "t/train/", "train", 1);
    expect(f, 1, 1);
}

static void a_record_that_cannot_be_read_is_an_error_once_and_passed_over(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_add_broken(f->broker);
    fake_add(f->broker, true);
    assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -EBADMSG);
    assert_non_null(strstr(sluice_error(f->client), "trajectory 1 of stream train"));
    expect(f, 2, 2);
}

static void garbage_on_the_feed_is_passed_over(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    fake_publish_bytes(f->broker, "t/train/", "\xc1\xc1", false);
    fake_publish_bytes(f->broker, "t/train/", "", false);
    fake_publish_bytes(f->broker, "t/train/", "three frames", true);
    fake_publish_bytes(f->broker, "t/train/sub", "another topic", false);
    fake_add(f->broker, true);
    expect(f, 1, 1);
}

static void garbage_on_front_is_passed_over(void **state)
{
    struct fixture *f = *state;
    fake_answer_garbage(f->broker);
    const char *json;
    assert_int_equal(sluice_status(f->client, &json), 0);
    assert_string_equal(json, "{\"epoch\":3}");
}

static void requests_between_do_not_disturb_the_fetch(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 300, 100);
    subscribe(f, 1);
    for (uint64_t seq = 1; seq <= 300; seq++) {
        const struct sluice_trajectory *other;
        const char *words;
        expect(f, seq, seq);
        /* The fetch that this starts is answered while the others wait for theirs. */
        if (seq % 64 == 0)
            assert_int_equal(sluice_next(f->client, 0, &f->got), -EAGAIN);
        assert_int_equal(sluice_ack(f->client, "train", seq), 0);
        assert_int_equal(sluice_get(f->client, "g/0", &other, &words), 0);
        assert_int_equal(other->seq, 1);
    }
    assert_int_equal(fake_acked(f->broker), 300);
}

static void with_a_third_lost_five_thousand_come_in_order(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    for (uint64_t at = 0; at < 5000; at += 500) {
        fake_add_many(f->broker, 500, 33);
        expect(f, at + 1, at + 250);
        if (at % 1500 == 0)
            fake_restart(f->broker, false);
        fake_publish_head(f->broker);
        expect(f, at + 251, at + 500);
    }
}

static void one_that_reads_too_slowly_loses_nothing(void **state)
{
    struct fixture *f = *state;
    subscribe(f, 1);
    /* More than the queues hold, before the first is read. */
    fake_add_many(f->broker, 4000, 0);
    expect(f, 1, 4000);
}

static void a_feed_that_drops_most_of_it_loses_nothing(void **state)
{
    struct fixture *f = *state;
    fake_drop_much(f->broker);
    subscribe(f, 1);
    fake_add_many(f->broker, 6000, 0);
    expect(f, 1, 6000);
    /* Had it dropped none, no fetch but the first would have been needed. */
    assert_true(fake_count(f->broker, MSG_stream_fetch) > 20);
}

static void a_bad_stream_name_is_refused_before_anything_is_sent(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sluice_subscribe(f->client, "a/b", 1), -EINVAL);
    assert_int_equal(sluice_subscribe(f->client, "", 1), -EINVAL);
    assert_int_equal(fake_count(f->broker, MSG_stream_fetch), 0);
    assert_int_equal(sluice_next(f->client, 0, &f->got), -EINVAL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(trajectories_come_once_and_in_order),
        CASE(a_trajectory_shows_its_message_and_its_record),
        CASE(a_duplicate_is_dropped),
        CASE(a_gap_is_fetched),
        CASE(a_lost_last_message_is_noticed_by_the_head),
        CASE(a_silent_feed_makes_the_client_ask),
        CASE(zero_starts_at_the_oldest_kept),
        CASE(a_forgotten_number_is_an_error_that_says_so),
        CASE(what_is_forgotten_while_reading_is_told_with_the_oldest_that_is_kept),
        CASE(a_restored_back_up_that_has_grown_again_is_stale),
        CASE(a_start_at_which_the_last_one_is_forgotten_is_gone_on_from),
        CASE(a_cursor_makes_a_new_process_go_on_with_the_one_in_hand),
        CASE(a_cursor_into_a_ledger_that_is_gone_is_stale),
        CASE(a_cursor_that_is_none_of_this_stream_is_refused),
        CASE(a_cursor_that_cannot_be_written_is_told_before_anything_more_is_given),
        CASE(a_reader_renews_leases_by_itself),
        CASE(a_broker_that_stays_away_is_told_after_patience),
        CASE(a_feed_that_drops_most_of_it_loses_nothing),
        CASE(a_stream_that_does_not_exist_yet_begins_later),
        CASE(reading_may_start_beyond_the_end),
        CASE(reading_goes_on_across_restarts_of_the_broker),
        CASE(a_broker_that_is_away_is_waited_for),
        CASE(an_unanswered_fetch_is_sent_again),
        CASE(a_shorter_ledger_is_stale),
        CASE(a_stream_whose_name_begins_the_same_is_not_mixed_in),
        CASE(a_record_that_cannot_be_read_is_an_error_once_and_passed_over),
        CASE(garbage_on_the_feed_is_passed_over),
        CASE(garbage_on_front_is_passed_over),
        CASE(requests_between_do_not_disturb_the_fetch),
        CASE(with_a_third_lost_five_thousand_come_in_order),
        CASE(one_that_reads_too_slowly_loses_nothing),
        CASE(a_bad_stream_name_is_refused_before_anything_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
