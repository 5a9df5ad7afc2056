/* The server runs as fibers on the same loop; what it does is chosen by the path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/fiber.h"
#include "workers/http.h"

static struct loop *loop;
static struct http *http;
static char base[64];
static int listener, connections, open_now, living, serving;
static struct fiber *acceptor;
static char last_head[4096];

/* ---- the server ------------------------------------------------------------------------- */

static bool write_all(int fd, const char *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t count = send(fd, data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && (errno != EAGAIN || await_fd(fd, EPOLLOUT, 5000) < 0))
            return false;
        at += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static bool write_text(int fd, const char *text)
{
    return write_all(fd, text, strlen(text));
}

static bool answer(int fd, const char *status, const char *body)
{
    AUTO_BUFFER out = {0};
    buffer_printf(&out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
    return write_all(fd, (char *)out.data, out.len);
}

static bool answer_endlessly(int fd)
{
    static char block[65536];
    write_text(fd, "HTTP/1.1 200 OK\r\n\r\n");
    while (write_all(fd, block, sizeof(block)))
        ;
    return false;
}

/* Answers what it holds; false when the connection is to close. */
static bool serve_one(int fd, const char *head, const char *body)
{
    snprintf(last_head, sizeof(last_head), "%s", head);
    if (strstr(head, "/echo "))
        return answer(fd, "200 OK", body);
    if (strstr(head, "/busy "))
        return answer(fd, "503 Service Unavailable", "loading");
    if (strstr(head, "/moved "))
        return write_text(fd, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n"
                              "Content-Length: 0\r\n\r\n");
    if (strstr(head, "/cut "))
        return write_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfew") && false;
    if (strstr(head, "/endless "))
        return answer_endlessly(fd);
    if (strstr(head, "/silent ")) {
        await_fd(fd, EPOLLIN | EPOLLRDHUP, 5000); /* until the client closes */
        return false;
    }
    return answer(fd, "200 OK", "hello");
}

static bool read_request(int fd, char *head, size_t size, char **body)
{
    size_t len = 0;
    for (head[0] = '\0';; head[len] = '\0') {
        char *end = strstr(head, "\r\n\r\n"), *length = strcasestr(head, "Content-Length:");
        if (end &&
            (size_t)(head + len - end - 4) >= (length ? strtoul(length + 15, NULL, 10) : 0)) {
            *end = '\0';
            *body = end + 4;
            return true;
        }
        if (await_fd(fd, EPOLLIN, 10000) < 0)
            return false;
        ssize_t count = recv(fd, head + len, size - len - 1, MSG_DONTWAIT);
        if (count <= 0)
            return false;
        len += (size_t)count;
    }
}

static void serve(void *arg)
{
    AUTO_CLOSE int fd = (int)(intptr_t)arg;
    AUTO_FREE char *head = malloc(300000);
    char *body;
    open_now++;
    while (read_request(fd, head, 300000, &body) && serve_one(fd, head, body))
        ;
    open_now--;
}

static void serve_ended(void *arg)
{
    (void)arg;
    if (--serving == 0 && living == 0)
        loop_stop(loop);
}

static void accept_all(void *arg)
{
    (void)arg;
    while (await_fd(listener, EPOLLIN, -1) > 0) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        connections++;
        serving++;
        assert_non_null(fiber_start(loop, serve, serve_ended, (void *)(intptr_t)fd));
    }
}

/* ---- around each test ------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 64) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        return -1;
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", ntohs(address.sin_port));
    connections = open_now = living = 0;
    serving = 1; /* the acceptor */
    loop = loop_create();
    http = http_create(loop, 4, NULL);
    acceptor = fiber_start(loop, accept_all, serve_ended, NULL);
    return http && acceptor ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    http_destroy(&http);
    assert_null(http);
    loop_destroy(&loop);
    close(listener);
    return 0;
}

struct ask {
    const char *path, *body;
    size_t body_max;
    int64_t deadline_ms;
    int error, times;
    long status;
    char text[128];
    size_t len;
    struct fail fail;
};

static void ask_run(void *arg)
{
    struct ask *ask = arg;
    char url[256];
    snprintf(url, sizeof(url), "%s%s", ask->path[0] == '/' ? base : "", ask->path);
    if (ask->deadline_ms)
        fiber_push_deadline(clock_ms() + ask->deadline_ms);
    for (int i = 0; i == 0 || i < ask->times; i++) {
        struct http_reply reply;
        ask->error = http_request(http, url, ask->body, ask->body_max ? ask->body_max : 1 << 20,
                                  &reply, &ask->fail);
        ask->status = reply.status;
        ask->len = reply.body.len;
        snprintf(ask->text, sizeof(ask->text), "%.*s", SLICE_ARG(buffer_peek(&reply.body)));
        buffer_finish(&reply.body);
    }
}

static void http_gone(void *arg)
{
    (void)arg;
    fiber_cancel(acceptor);
    http_destroy(&http); /* closes what it kept, so that the server's fibers end */
}

static void ask_ended(void *arg)
{
    (void)arg;
    if (--living == 0)
        loop_after(loop, 0, http_gone, NULL);
}

static struct fiber *ask_start(struct ask *ask)
{
    living++;
    return fiber_start(loop, ask_run, ask_ended, ask);
}

static void out_of_time(void *arg)
{
    (void)arg;
    fail_msg("not done within 20 seconds");
}

static void run_all(void)
{
    struct loop_timer *bound = loop_after(loop, 20000, out_of_time, NULL);
    loop_run(loop);
    loop_cancel(loop, &bound);
    assert_int_equal(open_now, 0);
}

static void ask(struct ask *ask)
{
    ask_start(ask);
    run_all();
}

/* ---- tests ------------------------------------------------------------------------------ */

static void a_get_brings_the_body_and_the_status(void **state)
{
    (void)state;
    struct ask a = {.path = "/"};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.text, "hello");
    assert_non_null(strstr(last_head, "GET / HTTP/1.1"));
}

static void a_post_carries_json_and_expects_nothing(void **state)
{
    (void)state;
    struct ask a = {.path = "/echo", .body = "{\"a\":1}"};
    ask(&a);
    assert_string_equal(a.text, "{\"a\":1}");
    assert_non_null(strstr(last_head, "POST /echo"));
    assert_non_null(strcasestr(last_head, "content-type: application/json"));
    assert_null(strcasestr(last_head, "expect:"));
}

static void a_long_post_goes_out_whole(void **state)
{
    (void)state;
    AUTO_FREE char *body = malloc(200001);
    memset(body, 'x', 200000);
    body[200000] = '\0';
    struct ask a = {.path = "/echo", .body = body};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.len, 200000);
}

static void an_error_status_is_an_answer(void **state)
{
    (void)state;
    struct ask a = {.path = "/busy"};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.status, 503);
    assert_string_equal(a.text, "loading");
}

static void a_redirect_is_not_followed(void **state)
{
    (void)state;
    struct ask a = {.path = "/moved"};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.status, 302);
}

static void one_connection_serves_many_requests(void **state)
{
    (void)state;
    struct ask a = {.path = "/", .times = 50};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_int_equal(connections, 1);
}

static void connections_to_one_host_are_bounded_and_all_requests_answered(void **state)
{
    (void)state;
    struct ask asks[40];
    for (int i = 0; i < 40; i++) {
        asks[i] = (struct ask){.path = "/", .times = 5};
        ask_start(&asks[i]);
    }
    run_all();
    for (int i = 0; i < 40; i++)
        assert_int_equal(asks[i].error, 0);
    assert_in_range(connections, 1, 4);
}

static void nobody_there_is_refused_with_the_url_in_the_sentence(void **state)
{
    (void)state;
    struct ask a = {.path = "http://127.0.0.1:1/x"};
    ask(&a);
    assert_int_equal(a.error, -ECONNREFUSED);
    assert_int_equal(a.fail.code, -ECONNREFUSED);
    assert_non_null(strstr(a.fail.text, "http://127.0.0.1:1/x: "));
}

static void too_much_is_refused_and_not_kept(void **state)
{
    (void)state;
    struct ask a = {.path = "/endless", .body_max = 100000};
    ask(&a);
    assert_int_equal(a.error, -EMSGSIZE);
    assert_non_null(strstr(a.fail.text, "100000 bytes"));
    assert_int_equal(a.len, 0);
}

static void exactly_body_max_is_allowed(void **state)
{
    (void)state;
    struct ask a = {.path = "/", .body_max = 5};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_string_equal(a.text, "hello");
}

static void an_answer_cut_short_is_broken(void **state)
{
    (void)state;
    struct ask a = {.path = "/cut"};
    ask(&a);
    assert_int_equal(a.error, -EIO);
}

static void past_the_deadline_the_connection_closes(void **state)
{
    (void)state;
    struct ask a = {.path = "/silent", .deadline_ms = 50};
    int64_t begin = clock_ms();
    ask(&a);
    assert_int_equal(a.error, -ETIMEDOUT);
    assert_in_range(clock_ms() - begin, 50, 2000); /* the server saw it close, or 5 s */
}

static void cancel(void *arg)
{
    fiber_cancel(arg);
}

static void a_cancel_closes_the_connection_at_once(void **state)
{
    (void)state;
    struct ask a = {.path = "/silent"}, b = {.path = "/", .times = 100};
    loop_after(loop, 30, cancel, ask_start(&a));
    ask_start(&b);
    int64_t begin = clock_ms();
    run_all();
    assert_int_equal(a.error, -ECANCELED);
    assert_int_equal(b.error, 0);
    assert_in_range(clock_ms() - begin, 30, 2000);
}

static void only_http_is_spoken(void **state)
{
    (void)state;
    struct ask a = {.path = "file:///etc/hostname"}, b = {.path = "no url at all"};
    ask_start(&b);
    ask(&a);
    assert_int_equal(a.error, -EIO);
    assert_int_equal(b.error, -EIO);
}

static void no_proxy_is_used(void **state)
{
    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    struct ask a = {.path = "/"};
    ask(&a);
    unsetenv("http_proxy");
    assert_int_equal(a.error, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_get_brings_the_body_and_the_status),
        TEST(a_post_carries_json_and_expects_nothing),
        TEST(a_long_post_goes_out_whole),
        TEST(an_error_status_is_an_answer),
        TEST(a_redirect_is_not_followed),
        TEST(one_connection_serves_many_requests),
        TEST(connections_to_one_host_are_bounded_and_all_requests_answered),
        TEST(nobody_there_is_refused_with_the_url_in_the_sentence),
        TEST(too_much_is_refused_and_not_kept),
        TEST(exactly_body_max_is_allowed),
        TEST(an_answer_cut_short_is_broken),
        TEST(past_the_deadline_the_connection_closes),
        TEST(a_cancel_closes_the_connection_at_once),
        TEST(only_http_is_spoken),
        TEST(no_proxy_is_used),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
