/* What grows has a bound: bodies, bytes of all together, connections, and the time of those who are not there. */
#include "common/http/exchange_inside.h"

#include "tests/common/http/http_world.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#define HOST "Host: h\r\n"
#define CLOSE "Connection: close\r\n"

/* ---- of one body ------------------------------------------------------------------------------------------ */

static void bodies_that_are_too_large_are_refused(void **state)
{
    (void)state;
    AUTO_BUFFER request = {0}, chunk = {0};
    buffer_printf(&request, "POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: %d\r\n\r\n", BODY_MAX + 1);
    for (int i = 0; i <= BODY_MAX; i++)
        buffer_append(&request, "x", 1);
    AUTO_FREE char *answer = ask_bytes(buffer_peek(&request));
    assert_int_equal(status_of(answer), 413);
    assert_non_null(strstr(answer, "{\"detail\":\"the body is larger than 1 MiB\"}"));
    buffer_printf(&chunk, "POST /echo HTTP/1.1\r\n" HOST CLOSE "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 40; i++)
        buffer_printf(&chunk, "8000\r\n%032768d\r\n", i);
    buffer_append_str(&chunk, "0\r\n\r\n");
    AUTO_FREE char *chunked = ask_bytes(buffer_peek(&chunk));
    assert_int_equal(status_of(chunked), 413);
    /* One that says to be larger than would be read is told at once. */
    check_ask("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000000000\r\n\r\nx", 413, "1 MiB");
    assert_int_equal(owner.asked, 0);
    assert_int_equal(http_server_held(server), 0);
}

/* Nobody reads for ever what nobody wants. */
static void a_refused_body_without_end_is_cut(void **state)
{
    (void)state;
    struct client client;
    AUTO_BUFFER chunk = {0};
    client_open(&client);
    client_say(&client, "POST /secret HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 320; i++)
        buffer_printf(&chunk, "8000\r\n%032768d\r\n", i);
    client_say_bytes(&client, buffer_peek(&chunk));
    client_await_close(&client);
    client_close(&client);
    assert_int_equal(owner.whole, 0);
}

/* ---- bounds of all together ------------------------------------------------------------------------------ */

static int open_small(void **state)
{
    (void)state;
    struct http_server_plan plan = usual_plan();
    plan.held_max = 100000;
    plan.connections_max = 10;
    open_server(&plan);
    return 0;
}

static void as_many_bytes_as_may_be_held_are_and_no_more(void **state)
{
    (void)state;
    struct client holder;
    AUTO_BUFFER request = {0};
    buffer_printf(&request, "POST /wait HTTP/1.1\r\n" HOST "Content-Length: 120000\r\n\r\n%0120000d", 1);
    client_open(&holder);
    client_say_bytes(&holder, buffer_peek(&request));
    client_await(&holder, "\r\n\r\n");
    assert_int_equal(status_of((char *)holder.in.data), 503);
    client_close(&holder);
    assert_int_equal(http_server_held(server), 0);
    http_server_count(server, 0, 100000);
    assert_true(http_server_is_full(server));
    check_ask("POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: 5\r\n\r\nhello", 503, "Retry-After: 2\r\n");
    check_ask("GET / HTTP/1.1\r\n" HOST CLOSE "\r\n", 200, "fine");
    http_server_count(server, 100000, 0);
    check_ask("POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: 5\r\n\r\nhello", 200, "hello");
}

static void connections_beyond_the_bound_wait_until_others_end(void **state)
{
    (void)state;
    struct client clients[11];
    for (size_t i = 0; i < 11; i++) {
        client_open(&clients[i]);
        client_say(&clients[i], "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    }
    await_count("ten wait", &owner.waiting_count, 10);
    client_close(&clients[0]);
    await_count("one hung up", &owner.gone, 1);
    await_count("another has its place", &owner.asked, 11);
    for (size_t i = 1; i < 11; i++)
        client_close(&clients[i]);
    await_count("all have gone", &owner.gone, 11);
}

/* Ten that say nothing have a time of their own that nobody would wait for. */
static int open_crowded(void **state)
{
    (void)state;
    struct http_server_plan plan = usual_plan();
    plan.connections_max = 10;
    plan.idle_ms = 2 * BOUND_MS;
    open_server(&plan);
    return 0;
}

static void a_crowd_that_says_nothing_keeps_nobody_out_for_long(void **state)
{
    (void)state;
    struct client crowd[10], outside;
    for (size_t i = 0; i < 10; i++)
        client_open(&crowd[i]);
    client_say(&crowd[0], "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    client_open(&outside);
    client_say(&outside, "GET / HTTP/1.1\r\n" HOST "\r\n");
    client_await(&outside, "fine");
    for (size_t i = 1; i < 10; i++)
        client_await_close(&crowd[i]);
    assert_int_equal(owner.waiting_count, 1); /* who waits for an answer is none of them */
    answer_text(owner.waiting[0], 200, "later");
    client_await(&crowd[0], "later");
    for (size_t i = 0; i < 10; i++)
        client_close(&crowd[i]);
    client_close(&outside);
}

/* Nothing spins meanwhile, and who waits comes in when there is room. */
static void without_descriptors_others_wait_until_there_are_some(void **state)
{
    (void)state;
    struct client inside[4], outside;
    struct rlimit before, none;
    for (size_t i = 0; i < 4; i++) {
        client_open(&inside[i]);
        client_say(&inside[i], "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    }
    await_count("four wait", &owner.waiting_count, 4);
    client_open(&outside);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = (rlim_t)outside.fd + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    client_say(&outside, "GET / HTTP/1.1\r\n" HOST "\r\n");
    answer_text(owner.waiting[0], 200, "later");
    await_count("one is answered", &owner.whole, 1);
    const uint64_t turns = loop_progress(loop);
    for (size_t i = 0; i < 3; i++)
        answer_text(owner.waiting[0], 200, "later"), await_count("it is answered", &owner.whole, i + 2);
    assert_true(loop_progress(loop) - turns < 1000);
    assert_int_equal(owner.asked, 4);
    setrlimit(RLIMIT_NOFILE, &before);
    client_close(&inside[0]);
    client_await(&outside, "fine");
    for (size_t i = 1; i < 4; i++)
        client_close(&inside[i]);
    client_close(&outside);
}

/* ---- of time -------------------------------------------------------------------------------------------- */

static void clients_that_are_silent_are_asked_whether_they_are_there(void **state)
{
    (void)state;
    struct client client;
    int is_on = 0, after_s = 0;
    socklen_t len = sizeof(int);
    client_open(&client);
    client_say(&client, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("it waits", &owner.waiting_count, 1);
    const int fd = http_connection_fd(owner.waiting[0]->connection);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_on, &len), 0);
    assert_int_equal(is_on, 1);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after_s, &len), 0);
    assert_int_equal(after_s, 60);
    client_close(&client);
    await_count("it is gone", &owner.gone, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_many_bytes_as_may_be_held_are_and_no_more, open_small, close_server),
        cmocka_unit_test_setup_teardown(connections_beyond_the_bound_wait_until_others_end, open_small, close_server),
        cmocka_unit_test_setup_teardown(a_crowd_that_says_nothing_keeps_nobody_out_for_long, open_crowded,
                                        close_server),
        cmocka_unit_test_setup_teardown(without_descriptors_others_wait_until_there_are_some, open_usual, close_server),
        cmocka_unit_test_setup_teardown(bodies_that_are_too_large_are_refused, open_usual, close_server),
        cmocka_unit_test_setup_teardown(a_refused_body_without_end_is_cut, open_usual, close_server),
        cmocka_unit_test_setup_teardown(clients_that_are_silent_are_asked_whether_they_are_there, open_usual,
                                        close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
