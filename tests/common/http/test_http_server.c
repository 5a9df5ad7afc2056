/* Requests and whole answers: each form is answered as it should be, at once or later, and bounds hold. */
#include "tests/common/http/http_world.h"

#include <sys/un.h>
#include <zlib.h>

#define HOST "Host: h\r\n"
#define CLOSE "Connection: close\r\n"

/* ---- what was asked ------------------------------------------------------------------------------------ */

static void tell(struct exchange *exchange)
{
    char address[EXCHANGE_ADDRESS_SIZE];
    struct buffer body = {0};
    const char *query = exchange_query(exchange, "q"), *header = exchange_header(exchange, "x-one");
    exchange_peer_address(exchange, address);
    assert_int_equal(exchange_query_count(exchange, "q"), query ? 1 : 0);
    buffer_printf(&body, "%s|%s|%s|%s|%s|%zu|%zu|%s", exchange_method(exchange), exchange_path(exchange),
                  exchange_target(exchange), query ? query : "none", header ? header : "none",
                  exchange_header_count(exchange, "X-ONE"), exchange_body(exchange).len,
                  strncmp(address, "127.0.0.1:", 10) == 0 ? "here" : address);
    assert_true(exchange_set_header(exchange, "X-Told", "yes"));
    assert_false(exchange_set_header(exchange, "X-Split", "a\r\nSet-Cookie: b"));
    assert_false(exchange_set_header(exchange, "X Y", "z"));
    exchange_set_user(exchange, &owner);
    assert_ptr_equal(exchange_user(exchange), &owner);
    exchange_answer(exchange, 201, "text/plain", &body);
    assert_int_equal(exchange_status(exchange), 201);
}

static void a_request_is_told_as_it_was(void **state)
{
    (void)state;
    on_other = tell;
    check_ask("PUT /a%20b?q=c%26d HTTP/1.1\r\n" HOST CLOSE
              "X-One:  two \r\nX-ONE: three\r\nContent-Length: 2\r\n\r\nok",
              201, "PUT|/a b|/a%20b?q=c%26d|c&d|two|2|2|here");
    check_ask("GET / HTTP/1.1\r\n" HOST CLOSE "\r\n", 201, "X-Told: yes");
    AUTO_FREE char *answer = ask_text("GET / HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_null(strstr(answer, "Set-Cookie"));
}

static void head_is_answered_as_get_without_a_body(void **state)
{
    (void)state;
    AUTO_FREE char *answer = ask_text("HEAD /large?size=100000 HTTP/1.1\r\n" HOST "\r\nHEAD / HTTP/1.1\r\n" HOST CLOSE
                                      "\r\n");
    assert_non_null(strstr(answer, "Content-Length: 100000\r\n"));
    assert_non_null(strstr(answer, "Content-Length: 4\r\n"));
    assert_null(strstr(answer, "abc"));
    assert_null(strstr(answer, "fine"));
    assert_string_equal(owner.last, "GET / 0");
    assert_int_equal(owner.whole, 2);
    assert_int_equal(owner.sent, 0);
}

static void bodies_come_whole_or_in_chunks(void **state)
{
    (void)state;
    check_ask("POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: 5\r\n\r\nhello", 200, "\r\n\r\nhello");
    check_ask("POST /echo HTTP/1.1\r\n" HOST CLOSE
              "Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
              200, "\r\n\r\nhello");
    check_ask("POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: 0\r\n\r\n", 200, "Content-Length: 0\r\n");
    check_ask("POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", 200, "\r\n\r\nhi");
}

/* A byte at a time, over a chunk's ends, too. */
static void slow_writers_are_heard_out(void **state)
{
    (void)state;
    static const char request[] = "POST /echo HTTP/1.1\r\n" HOST
                                  "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n"
                                  "0\r\n\r\n";
    struct client client, other;
    client_open(&client);
    client_open(&other);
    for (size_t i = 0; i + 1 < sizeof(request); i++) {
        client_say_bytes(&client, slice_of(request + i, 1));
        client_say(&other, "GET / HTTP/1.1\r\n" HOST "\r\n");
        client_await_times(&other, "fine", i + 1);
    }
    client_await(&client, "\r\n\r\nhello");
    client_await(&client, "Connection: close");
    client_close(&client);
    client_close(&other);
}

static void many_are_answered_in_a_row_on_one_connection(void **state)
{
    (void)state;
    struct client client;
    AUTO_BUFFER requests = {0};
    for (int i = 0; i < 500; i++)
        buffer_printf(&requests, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nnumber%03d", i);
    client_open(&client);
    client_say_bytes(&client, buffer_peek(&requests));
    client_await_times(&client, "\r\n\r\nnumber", 500);
    const uint8_t *at = client.in.data, *const end = at + client.in.len;
    assert_int_equal(owner.sent, 500 * 9);
    for (int i = 0; i < 500; i++) {
        char text[16];
        snprintf(text, sizeof(text), "number%03d", i);
        at = memmem(at, (size_t)(end - at), text, strlen(text));
        assert_non_null(at);
    }
    client_close(&client);
    assert_int_equal(owner.whole, 500);
}

/* ---- later ----------------------------------------------------------------------------------------------- */

/* The next request of a connection is not looked at before. */
static void an_answer_may_come_later(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    static struct client clients[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        client_open(&clients[i]);
        client_say(&clients[i], "GET /wait HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n");
    }
    await_count("all wait", &owner.waiting_count, COUNT);
    assert_int_equal(owner.asked, COUNT);
    assert_int_equal(http_server_connections(server), COUNT);
    while (owner.waiting_count > 0)
        answer_text(owner.waiting[--owner.waiting_count], 200, "later");
    for (size_t i = 0; i < COUNT; i++) {
        client_await(&clients[i], "later");
        client_await(&clients[i], "fine");
        client_close(&clients[i]);
    }
    await_count("all are answered", &owner.whole, 2 * COUNT);
}

static void who_waits_when_the_server_closes_is_gone(void **state)
{
    (void)state;
    struct client client;
    client_open(&client);
    client_say(&client, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("it waits", &owner.waiting_count, 1);
    http_server_close(&server);
    assert_int_equal(owner.gone, 1);
    assert_int_equal(owner.whole, 0);
    client_await_close(&client);
    client_close(&client);
}

/* ---- refusals -------------------------------------------------------------------------------------------- */

static void what_is_answered_at_its_head_is_read_to_its_end(void **state)
{
    (void)state;
    struct client client;
    AUTO_BUFFER body = {0};
    assert_non_null(buffer_reserve(&body, 3 << 20));
    memset(body.data, 'x', 3 << 20);
    body.len = 3 << 20;
    client_open(&client);
    client_say(&client, "POST /secret HTTP/1.1\r\n" HOST "Content-Length: 3145728\r\n\r\n");
    client_say_bytes(&client, buffer_peek(&body));
    client_say(&client, "GET /after HTTP/1.1\r\n" HOST "\r\n");
    client_await(&client, "{\"detail\":\"who are you?\"}");
    client_await(&client, "fine");
    assert_int_equal(status_of((char *)client.in.data), 401);
    assert_int_equal(http_server_held(server), 0);
    client_close(&client);
}

/* Who asks for leave is told before it sends anything. */
static void leave_to_send_is_given_where_the_body_is_wanted(void **state)
{
    (void)state;
    struct client client;
    client_open(&client);
    client_say(&client, "POST /echo HTTP/1.1\r\n" HOST CLOSE "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    client_await(&client, "HTTP/1.1 100 Continue\r\n\r\n");
    client_say(&client, "hello");
    client_await(&client, "\r\n\r\nhello");
    client_close(&client);
    check_ask("POST /secret HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", 401,
              "who are you?");
    check_ask("POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n", 413, "1 MiB");
}

/* ---- codings --------------------------------------------------------------------------------------------- */

/* `bits` are zlib's: of gzip, of deflate, or without a header. */
static void squeeze(struct slice text, int bits, struct buffer *ret)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)text.data, .avail_in = (uInt)text.len};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.avail_out = (uInt)deflateBound(&stream, text.len);
    stream.next_out = buffer_reserve(ret, stream.avail_out);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    ret->len += stream.total_out;
    deflateEnd(&stream);
}

static char *ask_encoded(const char *coding, struct slice body)
{
    AUTO_BUFFER request = {0};
    buffer_printf(&request, "POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
                  coding, body.len);
    buffer_append(&request, body.data, body.len);
    return ask_bytes(buffer_peek(&request));
}

static void encoded_bodies_are_decoded_within_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *coding;
        int bits;
    } codings[] = {{"gzip", 31}, {"x-GZIP", 31}, {"deflate", 15}, {"deflate", -15}};
    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        AUTO_BUFFER body = {0};
        squeeze(slice_from_str("hello"), codings[i].bits, &body);
        AUTO_FREE char *answer = ask_encoded(codings[i].coding, buffer_peek(&body));
        assert_int_equal(status_of(answer), 200);
        assert_non_null(strstr(answer, "\r\n\r\nhello"));
    }
    AUTO_BUFFER bomb = {0};
    AUTO_FREE uint8_t *zeros = calloc(1, 64 << 20);
    squeeze(slice_of(zeros, 64 << 20), 31, &bomb);
    AUTO_FREE char *answer = ask_encoded("gzip", buffer_peek(&bomb));
    assert_int_equal(status_of(answer), 413);
    AUTO_FREE char *broken = ask_encoded("gzip", slice_from_str("hello"));
    assert_int_equal(status_of(broken), 400);
    AUTO_FREE char *other = ask_encoded("br", slice_from_str("hello"));
    assert_int_equal(status_of(other), 400);
    assert_non_null(strstr(other, "Content-Encoding: br is not read"));
    AUTO_FREE char *quoted = ask_encoded("a\"b\\", slice_from_str("hello"));
    assert_non_null(strstr(quoted, "Content-Encoding: a\\\"b\\\\ is not read"));
    AUTO_FREE char *both = ask_encoded("gzip\r\nContent-Encoding: gzip", slice_from_str("hello"));
    assert_int_equal(status_of(both), 400);
    assert_int_equal(http_server_held(server), 0);
}

/* ---- a Unix socket --------------------------------------------------------------------------------------- */

static void tell_address(struct exchange *exchange)
{
    char address[EXCHANGE_ADDRESS_SIZE];
    exchange_peer_address(exchange, address);
    answer_text(exchange, 200, address);
}

static void a_unix_socket_is_served_alike(void **state)
{
    (void)state;
    const struct sockaddr_un address = {.sun_family = AF_UNIX}; /* bound to a name of the kernel's choice */
    struct sockaddr_un bound = {0};
    socklen_t len = sizeof(bound);
    struct http_server_plan plan = usual_plan();
    close(plan.fd);
    plan.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(plan.fd, (const struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(plan.fd, 8), 0);
    assert_int_equal(getsockname(plan.fd, (struct sockaddr *)&bound, &len), 0);
    open_server(&plan);
    on_other = tell_address;
    struct client client = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(client.fd, (struct sockaddr *)&bound, len), 0);
    client.watch = loop_watch(loop, client.fd, EPOLLIN, on_client, &client);
    client_say(&client, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("it waits", &owner.waiting_count, 1);
    answer_text(owner.waiting[0], 200, "later");
    client_await(&client, "later");
    client_say(&client, "GET / HTTP/1.1\r\n" HOST "\r\n");
    client_await(&client, "\r\n\r\nunix");
    client_say(&client, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("it waits again", &owner.waiting_count, 1);
    client_close(&client);
    await_count("it is gone", &owner.gone, 3);
}

/* ---- an owner's own errors -------------------------------------------------------------------------------- */

static const char *write_own(void *arg, struct exchange *exchange, int status, const char *words, struct buffer *ret)
{
    (void)arg;
    buffer_printf(ret, "<%d %s %s>", status, exchange_target(exchange), words);
    return "text/html";
}

static int open_own_errors(void **state)
{
    (void)state;
    struct http_server_plan plan = usual_plan();
    plan.write_error = write_own;
    open_server(&plan);
    return 0;
}

static void errors_are_written_in_the_owners_form(void **state)
{
    (void)state;
    check_ask("GET /secret HTTP/1.1\r\n" HOST CLOSE "\r\n", 401, "<401 /secret who are you?>");
    check_ask("GET /a HTTP/1.1\r\n" CLOSE "\r\n", 400, "Content-Type: text/html\r\n");
    check_ask("GET /a/../b HTTP/1.1\r\n" HOST "\r\n", 400, "<400 /a/../b the path has a part that is . or ..>");
    assert_int_equal(owner.heard, 1);
    assert_int_equal(owner.gone, 3);
    assert_int_equal(owner.whole, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_is_told_as_it_was, open_usual, close_server),
        cmocka_unit_test_setup_teardown(head_is_answered_as_get_without_a_body, open_usual, close_server),
        cmocka_unit_test_setup_teardown(bodies_come_whole_or_in_chunks, open_usual, close_server),
        cmocka_unit_test_setup_teardown(slow_writers_are_heard_out, open_usual, close_server),
        cmocka_unit_test_setup_teardown(many_are_answered_in_a_row_on_one_connection, open_usual, close_server),
        cmocka_unit_test_setup_teardown(an_answer_may_come_later, open_usual, close_server),
        cmocka_unit_test_setup_teardown(who_waits_when_the_server_closes_is_gone, open_usual, close_server),
        cmocka_unit_test_setup_teardown(what_is_answered_at_its_head_is_read_to_its_end, open_usual, close_server),
        cmocka_unit_test_setup_teardown(leave_to_send_is_given_where_the_body_is_wanted, open_usual, close_server),
        cmocka_unit_test_setup_teardown(encoded_bodies_are_decoded_within_bounds, open_usual, close_server),
        cmocka_unit_test_teardown(a_unix_socket_is_served_alike, close_server),
        cmocka_unit_test_setup_teardown(errors_are_written_in_the_owners_form, open_own_errors, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
