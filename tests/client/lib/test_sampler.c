#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sluice.h"
#include "tests/client/fake_broker.h"

static const struct sluice_sampler least = {.stream = "train", .trainer = "node7", .groups = 4};

struct fixture {
    struct fake_broker *broker;
    struct sluice_client *client;
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

static void what_a_rule_does_not_say_is_not_sent(void **state)
{
    struct fixture *f = *state;
    struct sluice_sampler_state got;
    assert_int_equal(sluice_sampler_open(f->client, &least, &got), 0);
    assert_string_equal(fake_last_options(f->broker), " stream=train trainer=node7 groups=4");
    assert_int_equal(got.batch, 3);
    assert_int_equal(got.submitted, 96);
    assert_string_equal(got.json, "{\"batch\":3,\"held\":0}");
}

static void a_whole_rule_is_sent_with_its_zeroes(void **state)
{
    struct fixture *f = *state;
    struct sluice_sampler_state got;
    const struct sluice_sampler whole = {.stream = "train",
                                         .trainer = "node7",
                                         .groups = 4,
                                         .filter = "none",
                                         .surplus = "cancel",
                                         .window = 32,
                                         .over_sample = 1500,
                                         .early = 3,
                                         .has_staleness = true,
                                         .has_ahead = true,
                                         .has_replace_max = true};
    assert_int_equal(sluice_sampler_open(f->client, &whole, &got), 0);
    assert_string_equal(fake_last_options(f->broker),
                        " stream=train trainer=node7 groups=4 filter=none surplus=cancel window=32 over_sample=1500"
                        " early=3 staleness=0 ahead=0 replace_max=0");
}

static void where_a_sampler_stands_can_be_asked(void **state)
{
    struct fixture *f = *state;
    struct sluice_sampler_state got;
    assert_int_equal(sluice_sampler_get(f->client, "train", &got), 0);
    assert_int_equal(got.batch, 3);
    assert_string_equal(got.json, "{\"batch\":3,\"held\":0}");
}

static void a_batch_is_its_json_or_why_there_is_none(void **state)
{
    struct fixture *f = *state;
    const char *json, *why;
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 3, 500, &json, &why), 0);
    assert_string_equal(json, "{\"batch\":3}");
    assert_null(why);
    assert_string_equal(fake_last_options(f->broker), " trainer=node7 wait_ms=500");
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 4, 0, &json, &why), 0);
    assert_null(json);
    assert_string_equal(why, "1 of 4 groups is ready");
    assert_string_equal(fake_last_options(f->broker), " trainer=node7 wait_ms=0");
}

/* Else the client would take the broker for dead while it waits. */
static void a_batch_is_waited_for_half_of_the_timeout_at_most(void **state)
{
    struct fixture *f = *state;
    const char *json, *why;
    sluice_set_timeout(f->client, 3000);
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 1, UINT64_MAX, &json, &why), 0);
    assert_string_equal(fake_last_options(f->broker), " trainer=node7 wait_ms=1500");
    sluice_set_timeout(f->client, 7200000);
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 1, UINT64_MAX, &json, &why), 0);
    assert_string_equal(fake_last_options(f->broker), " trainer=node7 wait_ms=600000");
}

static void closing_says_whether_to_cancel_and_how_many_were(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;
    assert_int_equal(sluice_sampler_close(f->client, "train", true, &count), 0);
    assert_int_equal(count, 3);
    assert_string_equal(fake_last_options(f->broker), " cancel=1");
    assert_int_equal(sluice_sampler_close(f->client, "train", false, NULL), 0);
    assert_string_equal(fake_last_options(f->broker), " cancel=0");
}

static void a_refusal_is_its_errno_and_the_brokers_sentence(void **state)
{
    struct fixture *f = *state;
    struct sluice_sampler_state got;
    const char *json = "before", *why = "before";
    fake_refuse(f->broker, REFUSAL_TOO_LARGE, "groups is more than the window");
    assert_int_equal(sluice_sampler_open(f->client, &least, &got), -EINVAL);
    assert_string_equal(sluice_error(f->client), "groups is more than the window");
    fake_refuse(f->broker, REFUSAL_NOT_ALLOWED, "node8 has taken it over");
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 1, 0, &json, &why), -EACCES);
    assert_null(json);
    assert_null(why);
    assert_string_equal(sluice_error(f->client), "node8 has taken it over");
}

static void an_answer_to_another_question_is_refused(void **state)
{
    struct fixture *f = *state;
    struct sluice_sampler_state got;
    const char *json, *why;
    fake_answer_done(f->broker);
    assert_int_equal(sluice_sampler_open(f->client, &least, &got), -EPROTO);
    assert_string_equal(sluice_error(f->client), "the broker answered with done");
    fake_answer_done(f->broker);
    assert_int_equal(sluice_sampler_get(f->client, "train", &got), -EPROTO);
    fake_answer_done(f->broker);
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 1, 0, &json, &why), -EPROTO);
    assert_null(json);
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 1, 0, &json, &why), 0);
}

static void an_answer_that_was_lost_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    const char *json, *why;
    fake_ignore(f->broker, 1);
    assert_int_equal(sluice_sampler_next(f->client, "train", "node7", 2, 0, &json, &why), 0);
    assert_string_equal(json, "{\"batch\":2}");
    assert_int_equal(fake_count(f->broker, MSG_sampler_next), 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_a_rule_does_not_say_is_not_sent),
        CASE(a_whole_rule_is_sent_with_its_zeroes),
        CASE(where_a_sampler_stands_can_be_asked),
        CASE(a_batch_is_its_json_or_why_there_is_none),
        CASE(a_batch_is_waited_for_half_of_the_timeout_at_most),
        CASE(closing_says_whether_to_cancel_and_how_many_were),
        CASE(a_refusal_is_its_errno_and_the_brokers_sentence),
        CASE(an_answer_to_another_question_is_refused),
        CASE(an_answer_that_was_lost_is_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
