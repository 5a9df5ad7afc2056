/* Who is known, asked about or refused, and who makes room for whom: with no broker, which none of it needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/gateway/broker/identities.h"
#include "client/gateway/broker/own_stream.h"
#include "common/net/token.h"

static struct loop *loop;
static struct key own;
static struct identities *identities;

static void token_of(unsigned number, char ret[TOKEN_SIZE])
{
    snprintf(ret, TOKEN_SIZE, "slk.trainer.guess.40%062x", number);
}

static struct identity *find(unsigned number, int *status)
{
    char token[TOKEN_SIZE];
    const char *why;
    token_of(number, token);
    return identities_find(identities, token, status, &why);
}

/* One that is there, and in use. */
static struct identity *get(unsigned number)
{
    int status;
    struct identity *identity = find(number, &status);
    if (!identity)
        fail_msg("%u: %d", number, status);
    return identity;
}

static void touch(unsigned number) { identities_give_back(identities, get(number)); }

static int open_all(void **state)
{
    struct fail fail;
    char token[TOKEN_SIZE];
    (void)state;
    token_of(0, token);
    assert_int_equal(token_parse(token, &own, &fail), 0);
    memcpy(own.broker_text, own.public_text, sizeof(own.broker_text));
    loop = loop_create();
    const struct identities_plan plan = {.loop = loop, .url = "tcp://127.0.0.1:9", .own = &own};
    identities = identities_open(&plan);
    return identities ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    identities_close(&identities);
    loop_destroy(&loop);
    return 0;
}

static void of_those_that_are_asked_about_few_are_in_use(void **state)
{
    struct identity *used[IDENTITIES_ASKED_MAX];
    int status;
    (void)state;
    for (unsigned i = 0; i < IDENTITIES_ASKED_MAX; i++)
        used[i] = get(1 + i);
    assert_null(find(1000, &status));
    assert_int_equal(status, 503);
    assert_ptr_equal(get(1), used[0]);
    identities_give_back(identities, used[0]);
    identities_give_back(identities, used[0]);
    touch(1000);
    for (unsigned i = 1; i < IDENTITIES_ASKED_MAX; i++)
        identities_give_back(identities, used[i]);
}

static void one_that_is_known_is_displaced_by_no_guess(void **state)
{
    (void)state;
    struct identity *alice = get(1);
    assert_false(alice->is_known);
    identities_know(identities, alice, "alice", false);
    identities_give_back(identities, alice);
    for (unsigned i = 0; i < 3 * IDENTITIES_MAX; i++)
        touch(10000 + i);
    assert_ptr_equal(get(1), alice);
    assert_true(alice->is_known);
    assert_string_equal(alice->name, "alice");
    identities_give_back(identities, alice);
}

static void know(unsigned number)
{
    struct identity *identity = get(number);
    identities_know(identities, identity, "x", false);
    identities_give_back(identities, identity);
}

static void of_as_many_as_may_be_known_the_one_used_longest_ago_goes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < IDENTITIES_MAX; i++)
        know(1 + i);
    struct identity *first = get(1), *second = get(2);
    assert_true(first->is_known && second->is_known);
    identities_give_back(identities, first);
    know(IDENTITIES_MAX + 1);
    identities_work(identities);
    struct identity *third = get(3); /* made anew: it was used longest ago, as the second is in use */
    assert_false(third->is_known);
    identities_give_back(identities, third);
    assert_true(get(1)->is_known);
    identities_give_back(identities, first);
    identities_give_back(identities, second);
}

static void where_all_that_are_known_are_in_use_nobody_else_is_asked_about(void **state)
{
    static struct identity *used[IDENTITIES_MAX];
    int status;
    (void)state;
    for (unsigned i = 0; i < IDENTITIES_MAX; i++) {
        used[i] = get(1 + i);
        identities_know(identities, used[i], "x", false);
    }
    assert_null(find(5000, &status));
    assert_int_equal(status, 503);
    for (unsigned i = 0; i < IDENTITIES_MAX; i++)
        identities_give_back(identities, used[i]);
    touch(5000);
}

static void a_streams_name_hangs_on_the_secret_and_fits(void **state)
{
    char one[OWN_STREAM_SIZE], other[OWN_STREAM_SIZE], again[OWN_STREAM_SIZE];
    char longest[KEY_NAME_SIZE];
    (void)state;
    struct identity *a = get(1), *b = get(2);
    memset(longest, 'k', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    identities_know(identities, a, longest, false);
    identities_know(identities, b, longest, false);
    assert_true(own_stream_name("a-long-name-of-a-stream-that-is-cut", a, one));
    assert_true(own_stream_name("a-long-name-of-a-stream-that-is-cut", b, other));
    assert_true(own_stream_name("a-long-name-of-a-stream-that-is-cut", a, again));
    assert_int_equal(strlen(one), OWN_STREAM_SIZE - 1);
    assert_memory_equal(one, other, strlen("a-long-name-of-a-stream-.kkkkkkkkkkkkkkkkkk-"));
    assert_string_not_equal(one, other);
    assert_string_equal(one, again);
    assert_true(own_stream_name("a-long-name-of-a-stream-that-is-cuT", a, other));
    assert_string_not_equal(one, other);
    identities_give_back(identities, a);
    identities_give_back(identities, b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_those_that_are_asked_about_few_are_in_use),
        TEST(one_that_is_known_is_displaced_by_no_guess),
        TEST(of_as_many_as_may_be_known_the_one_used_longest_ago_goes),
        TEST(where_all_that_are_known_are_in_use_nobody_else_is_asked_about),
        TEST(a_streams_name_hangs_on_the_secret_and_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
