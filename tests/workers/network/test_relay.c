/* A relay between two pairs of sockets: every byte, in order, within bounds; ends passed on. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "workers/network/relay.h"

static int left[2], right[2]; /* [0] is the test's end, [1] the relay's */
static int relay_code;
static bool relay_is_over;
static struct fiber *waiter;

static void run_relay(void *arg)
{
    (void)arg;
    relay_code = relay_run(left[1], right[1]);
    close(left[1]);
    close(right[1]);
    relay_is_over = true;
    fiber_wake(waiter);
}

static struct fiber *start_relay(void)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, left), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, right), 0);
    relay_is_over = false;
    waiter = fiber_current();
    struct fiber *fiber = fiber_start(loop, run_relay, NULL, NULL);
    assert_non_null(fiber);
    return fiber;
}

static void await_relay(void)
{
    while (!relay_is_over)
        assert_int_equal(await_wake(-1), 0);
    close(left[0]);
    close(right[0]);
}

/* Reads exactly that text; with an empty one, the end. */
static void expect_bytes(int fd, const char *expected)
{
    char got[64];
    size_t len = 0, wanted = strlen(expected);
    do {
        assert_true(await_fd(fd, EPOLLIN, 5000) > 0);
        ssize_t more = recv(fd, got + len, sizeof(got) - len, 0);
        assert_true(more >= 0);
        len += (size_t)more;
        if (more == 0)
            break;
    } while (len < wanted);
    assert_int_equal(len, wanted);
    assert_memory_equal(got, expected, wanted);
}

FIBER_TEST(bytes_go_both_ways_and_an_end_goes_one_way)
{
    start_relay();
    assert_int_equal(send(left[0], "ask", 3, 0), 3);
    expect_bytes(right[0], "ask");
    shutdown(left[0], SHUT_WR);
    expect_bytes(right[0], "");
    assert_false(relay_is_over);
    assert_int_equal(send(right[0], "answer", 6, 0), 6);
    expect_bytes(left[0], "answer");
    close(right[0]);
    right[0] = dup(left[0]);
    expect_bytes(left[0], "");
    await_relay();
    assert_int_equal(relay_code, 0);
}

FIBER_TEST(what_was_sent_before_an_end_arrives_before_it)
{
    start_relay();
    assert_int_equal(send(left[0], "last words", 10, 0), 10);
    close(left[0]);
    left[0] = dup(right[0]);
    expect_bytes(right[0], "last words");
    expect_bytes(right[0], "");
    shutdown(right[0], SHUT_WR);
    await_relay();
}

FIBER_TEST(what_nobody_reads_is_not_taken_in_without_bound)
{
    uint8_t block[4096] = {0};
    size_t sent = 0, received = 0;
    int small = 4096;
    start_relay();
    setsockopt(left[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    setsockopt(right[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    for (int quiet = 0; quiet < 20;) { /* nothing goes in for so many turns of the loop */
        ssize_t more = send(left[0], block, sizeof(block), 0);
        sent += more > 0 ? (size_t)more : 0;
        quiet = more > 0 ? 0 : quiet + 1;
        assert_int_equal(await_sleep(1), 0);
    }
    assert_in_range(sent, 4096, RELAY_BYTES + 65536);
    shutdown(left[0], SHUT_WR);
    for (ssize_t more = 1; more > 0; received += (size_t)more) {
        assert_true(await_fd(right[0], EPOLLIN, 5000) > 0);
        more = recv(right[0], block, sizeof(block), 0);
        assert_true(more >= 0);
    }
    assert_int_equal(received, sent);
    shutdown(right[0], SHUT_WR);
    await_relay();
}

FIBER_TEST(a_side_that_breaks_ends_the_relay)
{
    start_relay();
    close(right[0]);
    right[0] = dup(left[0]);
    expect_bytes(left[0], "");
    send(left[0], "to nobody", 9, 0);
    await_relay();
    assert_int_equal(relay_code, -EPIPE);
}

FIBER_TEST(a_cancelled_relay_ends_at_once)
{
    struct fiber *fiber = start_relay();
    assert_int_equal(send(left[0], "x", 1, 0), 1);
    expect_bytes(right[0], "x");
    fiber_cancel(fiber);
    await_relay();
    assert_int_equal(relay_code, -ECANCELED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_both_ways_and_an_end_goes_one_way),
        TEST(what_was_sent_before_an_end_arrives_before_it),
        TEST(what_nobody_reads_is_not_taken_in_without_bound),
        TEST(a_side_that_breaks_ends_the_relay),
        TEST(a_cancelled_relay_ends_at_once),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
