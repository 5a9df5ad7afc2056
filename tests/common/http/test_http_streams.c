/* Answers that come piece by piece: pushed as a stream or read from a source, and their clients that do not keep up. */
#include "tests/common/http/http_world.h"

#define HOST "Host: h\r\n"
#define EVENTS "GET /events HTTP/1.1\r\n" HOST "\r\n"

static struct exchange *stream; /* the latest at /events */

static void begin_stream(struct exchange *exchange)
{
    stream = exchange;
    exchange_set_header(exchange, "Cache-Control", "no-store");
    exchange_stream(exchange, 200, "text/event-stream");
}

static bool send_text(const char *text) { return exchange_send(stream, slice_from_str(text)); }

static void open_stream(struct client *client)
{
    const size_t before = owner.asked;
    on_other = begin_stream;
    client_open(client);
    client_say(client, EVENTS);
    await_count("a stream begins", &owner.asked, before + 1);
}

/* ---- pushed ------------------------------------------------------------------------------------------------ */

static void pieces_come_as_they_are_sent(void **state)
{
    (void)state;
    struct client client;
    open_stream(&client);
    client_await(&client, "Transfer-Encoding: chunked\r\n");
    client_await(&client, "Content-Type: text/event-stream\r\n");
    client_await(&client, "Cache-Control: no-store\r\n");
    for (int i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof(text), "data: %d;", i);
        assert_true(send_text(text));
        client_await(&client, text);
        assert_int_equal(exchange_unsent(stream), 0);
        assert_int_equal(http_server_held(server), 0);
    }
    assert_true(send_text("last"));
    exchange_end(stream);
    client_await(&client, "last\r\n0\r\n\r\n");
    await_count("it is gone", &owner.whole, 1);
    client_say(&client, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("its connection goes on", &owner.waiting_count, 1);
    client_close(&client);
    await_count("its client hung up", &owner.gone, 2);
}

/* In the callback of the request itself, all of it. */
static void send_at_once(struct exchange *exchange)
{
    begin_stream(exchange);
    assert_true(send_text("one"));
    assert_true(send_text("two"));
    exchange_end(exchange);
}

static void a_stream_may_end_before_it_begins(void **state)
{
    (void)state;
    on_other = send_at_once;
    AUTO_FREE char *answer = ask_bytes(slice_from_str("GET / HTTP/1.0\r\n\r\n"));
    assert_non_null(strstr(answer, "\r\n\r\nonetwo"));
    assert_null(strstr(answer, "chunked"));
    AUTO_FREE char *chunked = ask_bytes(slice_from_str("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    assert_non_null(strstr(chunked, "6\r\nonetwo\r\n0\r\n\r\n"));
    assert_int_equal(owner.whole, 2);
}

static void head_of_a_stream_has_no_body(void **state)
{
    (void)state;
    struct client client;
    on_other = send_at_once;
    client_open(&client);
    client_say(&client, "HEAD /events HTTP/1.1\r\n" HOST "\r\nGET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("the next is asked", &owner.waiting_count, 1);
    client_await(&client, "text/event-stream");
    answer_text(owner.waiting[0], 200, "next");
    client_await(&client, "next");
    assert_false(client_has(&client, "onetwo"));
    assert_false(client_has(&client, "\n0\r\n"));
    client_close(&client);
}

static void who_reads_no_more_is_told_no_more(void **state)
{
    (void)state;
    struct client client;
    static char piece[65536];
    memset(piece, 'x', sizeof(piece));
    open_stream(&client);
    client_await(&client, "\r\n\r\n");
    client_go_deaf(&client);
    size_t sent = 0;
    while (sent < 1000 && exchange_send(stream, slice_of(piece, sizeof(piece)))) {
        assert_true(exchange_unsent(stream) <= 1 << 20);
        sent++;
        struct client other; /* so that the server has time to write */
        client_open(&other);
        client_say(&other, "GET /large?size=1 HTTP/1.1\r\n" HOST "\r\n");
        client_await(&other, "\r\n\r\na");
        client_close(&other);
    }
    assert_true(sent >= 16);
    assert_true(sent < 1000);
    assert_false(exchange_send(stream, slice_of(piece, sizeof(piece))));
    assert_true(http_server_held(server) <= 4 << 20);
    exchange_drop(stream);
    assert_false(send_text("more"));
    await_count("it is gone", &owner.gone, sent + 1);
    assert_int_equal(owner.whole, sent);
    assert_int_equal(http_server_held(server), 0);
    client_close(&client);
}

static void one_piece_may_be_larger_than_the_bound_but_not_two(void **state)
{
    (void)state;
    struct client client;
    AUTO_FREE char *large = calloc(1, (1 << 20) + 1);
    open_stream(&client);
    assert_true(send_text("small"));
    client_await(&client, "small");
    assert_true(exchange_send(stream, slice_of(large, (1 << 20) + 1)));
    assert_false(exchange_send(stream, slice_of(large, 1 << 20)));
    assert_int_equal(exchange_unsent(stream), (1 << 20) + 1);
    exchange_end(stream);
    client_await(&client, "\r\n0\r\n\r\n");
    client_close(&client);
}

static void a_client_that_hangs_up_is_noticed_while_nothing_is_sent(void **state)
{
    (void)state;
    struct client client;
    open_stream(&client);
    assert_true(send_text("one"));
    client_await(&client, "one");
    client_close(&client);
    await_count("it is gone", &owner.gone, 1);
    assert_int_equal(owner.whole, 0);
}

/* Behind the last event many close before the end of the stream is told. */
static void who_has_the_last_piece_has_all(void **state)
{
    (void)state;
    struct client client;
    open_stream(&client);
    assert_true(send_text("one"));
    client_await(&client, "one");
    client_close(&client);
    exchange_end(stream);
    await_count("it is gone", &owner.whole, 1);
}

/* ---- read -------------------------------------------------------------------------------------------------- */

static struct source {
    const char *text;
    size_t there; /* bytes of it that are there */
    bool is_done, is_broken;
} source;

static ssize_t read_source(void *arg, uint64_t at, char *into, size_t max)
{
    const struct source *of = arg;
    const size_t left = of->there - (size_t)at, len = left < max ? left : max;
    if (of->is_broken)
        return EXCHANGE_READ_FAILED;
    if (len == 0)
        return of->is_done ? EXCHANGE_READ_END : 0;
    memcpy(into, of->text + at, len);
    return (ssize_t)len;
}

static void begin_source(struct exchange *exchange)
{
    const uint64_t size = exchange_query(exchange, "whole") ? strlen(source.text) : EXCHANGE_SIZE_UNKNOWN;
    stream = exchange;
    exchange_source(exchange, 200, "text/plain", size, read_source, &source);
}

static void open_source(struct client *client, const char *request)
{
    source = (struct source){.text = "to be read piece by piece"};
    on_other = begin_source;
    client_open(client);
    client_say(client, request);
    await_count("it is asked", &owner.asked, 1);
}

static void a_source_is_read_as_there_is_more(void **state)
{
    (void)state;
    struct client client;
    open_source(&client, "GET /source HTTP/1.1\r\n" HOST "\r\n");
    source.there = 5;
    exchange_more(stream);
    client_await(&client, "5\r\nto be\r\n");
    source.there = strlen(source.text);
    exchange_more(stream);
    exchange_more(stream);
    client_await(&client, " read piece by piece");
    source.is_done = true;
    exchange_more(stream);
    client_await(&client, "0\r\n\r\n");
    await_count("it is gone", &owner.whole, 1);
    client_close(&client);
}

static void a_source_of_known_size_has_a_length(void **state)
{
    (void)state;
    struct client client;
    open_source(&client, "GET /source?whole HTTP/1.1\r\n" HOST "\r\n");
    client_await(&client, "Content-Length: 25\r\n");
    source.there = 25;
    exchange_more(stream);
    client_await(&client, "to be read piece by piece");
    await_count("it is gone", &owner.whole, 1);
    client_close(&client);
}

static void a_source_that_fails_cuts_its_connection(void **state)
{
    (void)state;
    struct client client;
    open_source(&client, "GET /source HTTP/1.1\r\n" HOST "\r\n");
    source.there = 5;
    exchange_more(stream);
    client_await(&client, "to be");
    source.is_broken = true;
    exchange_more(stream);
    client_await_close(&client);
    assert_false(client_has(&client, "0\r\n\r\n"));
    assert_int_equal(owner.whole, 0);
    assert_int_equal(owner.gone, 1);
    client_close(&client);
}

static void an_exchange_may_be_dropped_at_any_time(void **state)
{
    (void)state;
    struct client waiting, streaming;
    client_open(&waiting);
    client_say(&waiting, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("one waits", &owner.waiting_count, 1);
    exchange_drop(owner.waiting[0]);
    client_await_close(&waiting);
    open_stream(&streaming);
    client_await(&streaming, "\r\n\r\n");
    exchange_drop(stream);
    client_await_close(&streaming);
    on_other = exchange_drop;
    AUTO_FREE char *answer = ask_bytes(slice_from_str("GET /drop HTTP/1.1\r\n" HOST "\r\n"));
    assert_string_equal(answer, "");
    assert_int_equal(owner.gone, 3);
    assert_int_equal(owner.whole, 0);
    client_close(&waiting);
    client_close(&streaming);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_come_as_they_are_sent, open_usual, close_server),
        cmocka_unit_test_setup_teardown(a_stream_may_end_before_it_begins, open_usual, close_server),
        cmocka_unit_test_setup_teardown(head_of_a_stream_has_no_body, open_usual, close_server),
        cmocka_unit_test_setup_teardown(who_reads_no_more_is_told_no_more, open_usual, close_server),
        cmocka_unit_test_setup_teardown(one_piece_may_be_larger_than_the_bound_but_not_two, open_usual, close_server),
        cmocka_unit_test_setup_teardown(a_client_that_hangs_up_is_noticed_while_nothing_is_sent, open_usual,
                                        close_server),
        cmocka_unit_test_setup_teardown(who_has_the_last_piece_has_all, open_usual, close_server),
        cmocka_unit_test_setup_teardown(a_source_is_read_as_there_is_more, open_usual, close_server),
        cmocka_unit_test_setup_teardown(a_source_of_known_size_has_a_length, open_usual, close_server),
        cmocka_unit_test_setup_teardown(a_source_that_fails_cuts_its_connection, open_usual, close_server),
        cmocka_unit_test_setup_teardown(an_exchange_may_be_dropped_at_any_time, open_usual, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
