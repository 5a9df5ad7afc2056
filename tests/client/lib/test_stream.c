/* Each trajectory once and in order, whatever is lost on the way. */
#include "client/lib/stream/stream.h"
#include "tests/client/lib/stream_world.h"

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
    expect(f, 1, 1);
    /* At once: sooner than a silent feed makes it ask. */
    assert_int_equal(sluice_next(f->client, SILENCE_MS - 500, &f->got), 0);
    expect(f, 3, 4);
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

static void what_this_client_submits_is_pending_until_the_broker_has_counted_it(void **state)
{
    struct fixture *f = *state;
    uint64_t before, after;
    subscribe(f, 1);
    fake_add(f->broker, true);
    expect(f, 1, 1);
    sluice_stream_state(f->client, NULL, &before);
    assert_int_equal(sluice_submit(f->client, "new", "train", 3, "{\"task\":\"add\",\"kind\":\"noop\"}"), 0);
    sluice_stream_state(f->client, NULL, &after);
    assert_int_equal(after, before + 3);
    expect_nothing(f); /* and asks the broker, whose word counts: seven are pending, whatever was submitted */
    sluice_stream_state(f->client, NULL, &after);
    assert_int_equal(after, 7);
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
    assert_string_equal(sluice_error(f->client), "stream train: number 2 is no longer kept; the oldest is 4");
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
    assert_string_equal(sluice_error(f->client), "stream train: number 65 is no longer kept; the oldest is 101");
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

static void tokens_of_another_template_or_tokenizer_are_an_error_and_passed_over(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *template, *tokenizer, *words;
    } rows[] = {
        {"sha256:template", "sha256:tokenizer", NULL},
        {NULL, "sha256:tokenizer", NULL},
        {"sha256:other", NULL, "has the template sha256:template, where sha256:other is expected"},
        {"sha256:template", "sha256:other", "has the tokenizer sha256:tokenizer, where"},
        {NULL, NULL, NULL},
    };
    char long_digest[81] = "";
    memset(long_digest, 'a', 80);
    assert_int_equal(sluice_expect(f->client, NULL, ""), -EINVAL);
    assert_int_equal(sluice_expect(f->client, long_digest, NULL), -EINVAL);
    subscribe(f, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        fake_add(f->broker, true);
        assert_int_equal(sluice_expect(f->client, rows[i].template, rows[i].tokenizer), 0);
        if (rows[i].words) {
            assert_int_equal(sluice_next(f->client, SOON_MS, &f->got), -EILSEQ);
            assert_null(f->got);
            assert_non_null(strstr(sluice_error(f->client), rows[i].words));
        } else {
            expect(f, i + 1, i + 1);
            assert_string_equal(f->got->traces[0].tokenizer_digest, "sha256:tokenizer");
        }
    }
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
    const struct CMUnitTest tests[] = {
        CASE(trajectories_come_once_and_in_order),
        CASE(a_trajectory_shows_its_message_and_its_record),
        CASE(a_duplicate_is_dropped),
        CASE(a_gap_is_fetched),
        CASE(a_lost_last_message_is_noticed_by_the_head),
        CASE(what_this_client_submits_is_pending_until_the_broker_has_counted_it),
        CASE(a_silent_feed_makes_the_client_ask),
        CASE(zero_starts_at_the_oldest_kept),
        CASE(a_forgotten_number_is_an_error_that_says_so),
        CASE(what_is_forgotten_while_reading_is_told_with_the_oldest_that_is_kept),
        CASE(a_feed_that_drops_most_of_it_loses_nothing),
        CASE(a_stream_that_does_not_exist_yet_begins_later),
        CASE(reading_may_start_beyond_the_end),
        CASE(reading_goes_on_across_restarts_of_the_broker),
        CASE(a_broker_that_is_away_is_waited_for),
        CASE(an_unanswered_fetch_is_sent_again),
        CASE(a_shorter_ledger_is_stale),
        CASE(a_stream_whose_name_begins_the_same_is_not_mixed_in),
        CASE(a_record_that_cannot_be_read_is_an_error_once_and_passed_over),
        CASE(tokens_of_another_template_or_tokenizer_are_an_error_and_passed_over),
        CASE(garbage_on_the_feed_is_passed_over),
        CASE(garbage_on_front_is_passed_over),
        CASE(requests_between_do_not_disturb_the_fetch),
        CASE(with_a_third_lost_five_thousand_come_in_order),
        CASE(one_that_reads_too_slowly_loses_nothing),
        CASE(a_bad_stream_name_is_refused_before_anything_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
