/* HTTP requests from fibers, against a server of our own. */
#include "tests/workers/runtime/http_server.h"
#include "workers/runtime/http_login.h"

struct ask {
    const char *path, *body;
    size_t body_max;
    int64_t deadline_ms;
    int error, times;
    long status;
    int64_t retry_after_s;
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
        ask->error = http_request(http, url, ask->body, ask->body_max ? ask->body_max : 1 << 20, &reply, &ask->fail);
        ask->status = reply.status;
        ask->retry_after_s = reply.retry_after_s;
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

/* ---- off a fiber ------------------------------------------------------------------------ */

struct later {
    long status;
    char text[64];
    struct fail why;
};

static void later_answered(void *arg, struct http_reply *reply, const struct fail *why)
{
    struct later *later = arg;
    if (why)
        later->why = *why;
    later->status = reply ? reply->status : -1;
    if (reply)
        snprintf(later->text, sizeof(later->text), "%.*s", SLICE_ARG(buffer_peek(&reply->body)));
    ask_ended(NULL);
}

static void get_later(struct later *later, const char *url, int64_t timeout_ms)
{
    living++;
    assert_true(http_get_later(http, url, 1000, timeout_ms, later_answered, later));
}

static void what_is_asked_off_a_fiber_is_answered_once_whatever_comes_of_it(void **state)
{
    (void)state;
    struct later good = {0}, busy = {0}, refused = {0}, late = {0}, large = {0};
    char url[128];
    snprintf(url, sizeof(url), "%s/", base);
    get_later(&good, url, 5000);
    snprintf(url, sizeof(url), "%s/busy", base);
    get_later(&busy, url, 5000);
    get_later(&refused, "http://127.0.0.1:1/health", 5000);
    snprintf(url, sizeof(url), "%s/silent", base);
    get_later(&late, url, 100);
    snprintf(url, sizeof(url), "%s/endless", base);
    get_later(&large, url, 5000);
    run_all();
    assert_true(good.status == 200 && strcmp(good.text, "hello") == 0);
    assert_true(busy.status == 503 && strcmp(busy.text, "loading") == 0);
    assert_int_equal(refused.why.code, -ECONNREFUSED);
    assert_non_null(strstr(refused.why.text, "http://127.0.0.1:1/health: "));
    assert_int_equal(late.why.code, -ETIMEDOUT);
    assert_int_equal(large.why.code, -EMSGSIZE);
}

static void destroy_early(void *arg)
{
    (void)arg;
    ask_ended(NULL);
}

static void what_is_asked_off_a_fiber_goes_with_the_client(void **state)
{
    (void)state;
    struct later never = {0};
    char url[128];
    snprintf(url, sizeof(url), "%s/silent", base);
    assert_true(http_get_later(http, url, 1000, 5000, later_answered, &never));
    living++;
    loop_after(loop, 50, destroy_early, NULL);
    run_all();
    assert_int_equal(never.status, 0);
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

static void an_answer_that_falls_silent_is_broken_and_its_connection_closed(void **state)
{
    (void)state;
    struct ask a = {.path = "/half"};
    int64_t begin = clock_ms();
    ask(&a);
    assert_int_equal(a.error, -EIO);
    assert_non_null(strstr(a.fail.text, "no byte of it for 0.4 s"));
    assert_in_range(clock_ms() - begin, SILENCE_MS, 4000); /* the server saw it close, or 5 s */
}

static void an_answer_that_is_slow_or_begins_late_is_not_broken(void **state)
{
    (void)state;
    struct ask late = {.path = "/late"}, drops = {.path = "/drops"};
    ask_start(&late);
    ask(&drops);
    assert_int_equal(late.error, 0);
    assert_string_equal(late.text, "hello");
    assert_int_equal(drops.error, 0);
    assert_string_equal(drops.text, "xxxxxxxxxxxx");
}

static void a_host_that_does_not_take_the_connection_is_given_up(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    AUTO_CLOSE int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(deaf, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(deaf, 0), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&address, &len), 0);
    int callers[4]; /* more than it may keep waiting: the kernel drops who comes next */
    for (int i = 0; i < 4; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(callers[i], (struct sockaddr *)&address, len);
    }
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
    struct ask a = {.path = url};
    int64_t begin = clock_ms();
    ask(&a);
    assert_int_equal(a.error, -ETIMEDOUT);
    assert_in_range(clock_ms() - begin, CONNECT_MS / 2, 5000);
    for (int i = 0; i < 4; i++)
        close(callers[i]);
}

static void when_to_come_back_is_read(void **state)
{
    (void)state;
    struct ask a = {.path = "/later"};
    ask(&a);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.status, 503);
    assert_int_equal(a.retry_after_s, 7);
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

static void cancel(void *arg) { fiber_cancel(arg); }

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

/* "u:p w@" in base64. */
static const char login[] = "authorization: basic dTpwIHdA";

static struct ask *ask_with(struct ask *a, const char *place, const char *credentials)
{
    char below[128];
    snprintf(below, sizeof(below), "%s%s", base, place);
    assert_true(http_set_credentials(http, below, "other:one"));
    assert_true(http_set_credentials(http, below, credentials));
    ask(a);
    return a;
}

static void credentials_go_with_requests_to_their_url_and_to_no_other(void **state)
{
    (void)state;
    struct ask a = {.path = "/echo", .body = "{}"};
    assert_int_equal(ask_with(&a, "", "u:p%20w%40")->error, 0);
    assert_non_null(strcasestr(last_head, login));
}

static void a_path_that_only_begins_alike_is_another(void **state)
{
    (void)state;
    struct ask a = {.path = "/echo", .body = "{}"};
    assert_int_equal(ask_with(&a, "/ec", "u:p%20w%40")->error, 0);
    assert_null(strcasestr(last_head, "authorization"));
}

static void credentials_that_are_taken_away_go_with_nothing(void **state)
{
    (void)state;
    struct ask a = {.path = "/echo", .body = "{}"};
    assert_int_equal(ask_with(&a, "", "")->error, 0);
    assert_null(strcasestr(last_head, "authorization"));
}

static void no_error_names_credentials(void **state)
{
    (void)state;
    struct ask a = {.path = "/silent", .deadline_ms = 200};
    assert_true(ask_with(&a, "", "u:SECRET")->error < 0);
    assert_null(strstr(a.fail.text, "SECRET"));
}

/* ---- lines -------------------------------------------------------------------------------- */

static void ask_on(struct http_line *line, const char *path, int expected)
{
    char url[256];
    struct http_reply reply;
    snprintf(url, sizeof(url), "%s%s", base, path);
    assert_int_equal(http_request_on(http, line, url, NULL, 1 << 20, &reply, NULL), expected);
    buffer_finish(&reply.body);
}

static void assert_line(const struct http_line *line, uint64_t requests, uint64_t connects)
{
    assert_int_equal(http_line_requests(line), requests);
    assert_int_equal(http_line_connects(line), connects);
}

static void ask_on_lines(void *arg)
{
    (void)arg;
    struct http_line *one = http_line_open(), *other = http_line_open();
    assert_true(one && other);
    ask_on(one, "/", 0);
    ask_on(other, "/", 0);
    ask_on(one, "/", 0);
    assert_line(one, 2, 1);
    assert_line(other, 1, 1);
    assert_int_equal(connections, 2);
    ask_on(one, "/cut", -EIO); /* and the server closes it */
    ask_on(one, "/", 0);
    assert_line(one, 4, 2);
    assert_int_equal(connections, 3);
    http_line_close(&one);
    http_line_close(&other);
    assert_null(one);
}

static void a_line_has_one_connection_and_counts_those_in_its_place(void **state)
{
    (void)state;
    living++;
    fiber_start(loop, ask_on_lines, ask_ended, NULL);
    run_all();
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
        TEST(what_is_asked_off_a_fiber_is_answered_once_whatever_comes_of_it),
        TEST(what_is_asked_off_a_fiber_goes_with_the_client),
        TEST(nobody_there_is_refused_with_the_url_in_the_sentence),
        TEST(too_much_is_refused_and_not_kept),
        TEST(exactly_body_max_is_allowed),
        TEST(an_answer_cut_short_is_broken),
        TEST(an_answer_that_falls_silent_is_broken_and_its_connection_closed),
        TEST(an_answer_that_is_slow_or_begins_late_is_not_broken),
        TEST(a_host_that_does_not_take_the_connection_is_given_up),
        TEST(when_to_come_back_is_read),
        TEST(past_the_deadline_the_connection_closes),
        TEST(a_cancel_closes_the_connection_at_once),
        TEST(a_line_has_one_connection_and_counts_those_in_its_place),
        TEST(only_http_is_spoken),
        TEST(no_proxy_is_used),
        TEST(credentials_go_with_requests_to_their_url_and_to_no_other),
        TEST(a_path_that_only_begins_alike_is_another),
        TEST(credentials_that_are_taken_away_go_with_nothing),
        TEST(no_error_names_credentials),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
