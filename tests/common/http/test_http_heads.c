/* Heads of requests that somebody in between could read otherwise, and those that have no room. */
#include "tests/common/http/http_world.h"

/* Each is refused, and what would be a second request for another reader is not answered. */
static void check_refused(const char *what, const char *request)
{
    AUTO_BUFFER bytes = text_buffer(request);
    const size_t asked = owner.asked, gone = owner.gone;
    AUTO_FREE char *answer = ask_bytes(buffer_peek(&bytes));
    if (status_of(answer) != 400 || strstr(answer, " 200 "))
        fail_msg("%s: %s", what, answer);
    assert_int_equal(owner.asked, asked);
    assert_true(owner.gone <= gone + 1);
}

#define HOST "Host: h\r\n"
#define SECOND "GET /second HTTP/1.1\r\n" HOST "\r\n"

static void what_two_would_read_differently_is_refused(void **state)
{
    (void)state;
    static const char *const forms[][2] = {
        {"two lengths", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello" SECOND},
        {"two equal lengths", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" SECOND},
        {"a list of lengths", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello" SECOND},
        {"a signed length", "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello" SECOND},
        {"a negative length", "POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nhello" SECOND},
        {"a hex length", "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello" SECOND},
        {"an empty length", "POST / HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\n" SECOND},
        {"a length with a space behind", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5 \r\n\r\nhello" SECOND},
        {"a length and chunks",
         "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND},
        {"chunks and a length",
         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" SECOND},
        {"chunks twice",
         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND},
        {"chunked and identity", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"
                                 "\r\n\r\n0\r\n\r\n" SECOND},
        {"another coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SECOND},
        {"no coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n" SECOND},
        {"nearly chunked", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SECOND},
        {"chunked with a space", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n" SECOND},
        {"chunked with a vertical tab", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
                                        "chunked\r\n\r\n0\r\n\r\n" SECOND},
        {"chunks in 1.0", "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND},
        {"a name with a space", "POST / HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\nhello" SECOND},
        {"a name with a tab", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n" SECOND},
        {"a name with a bracket", "POST / HTTP/1.1\r\n" HOST "A[b]: c\r\n\r\n" SECOND},
        {"no name", "POST / HTTP/1.1\r\n" HOST ": c\r\n\r\n" SECOND},
        {"no name nor value", "POST / HTTP/1.1\r\n" HOST ":\r\nContent-Length: 60\r\n\r\n" SECOND},
        {"no name at first", "POST / HTTP/1.1\r\n:c\r\n" HOST "\r\n" SECOND},
        {"lone line feeds", "POST / HTTP/1.1\nHost: h\n\n" SECOND},
        {"a trailer", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n" SECOND},
        {"a trailer without a name",
         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n: c\r\n" SECOND},
        {"a trailer without a name at first",
         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n: c\r\n\r\n" SECOND},
        {"no colon", "POST / HTTP/1.1\r\n" HOST "Content-Length\r\n\r\n" SECOND},
        {"a folded length", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n 0\r\n\r\nhello" SECOND},
        {"a folded header", "POST / HTTP/1.1\r\n" HOST "A: b\r\n\tTransfer-Encoding: chunked\r\n\r\n" SECOND},
        {"a first line that is folded", "POST / HTTP/1.1\r\n Content-Length: 5\r\n" HOST "\r\nhello" SECOND},
        {"a lone return", "POST / HTTP/1.1\r\n" HOST "A: b\rContent-Length: 5\r\n\r\nhello" SECOND},
        {"two hosts", "GET / HTTP/1.1\r\n" HOST "Host: i\r\n\r\n" SECOND},
        {"no host", "GET / HTTP/1.1\r\n\r\n" SECOND},
        {"a whole URL", "GET http://i/ HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"a space in a path", "GET /a b HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"dots", "GET /a/%2e%2e/b HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"a NUL in a path", "GET /a%00b HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"an encoded slash", "GET /a%2fb HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"a method that is none", "G@T / HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"a method that is long", "GETGETGETGETGETGETGETGET\x7f / HTTP/1.1\r\n" HOST "\r\n" SECOND},
        {"no version", "GET /\r\n" HOST "\r\n" SECOND},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        check_refused(forms[i][0], forms[i][1]);
}

/* They are found in the middle of a body, when the head was fine. */
static void bad_chunks_are_refused(void **state)
{
    (void)state;
    static const char *const chunks[] = {
        "x\r\nhello\r\n0\r\n\r\n",  "\r\nhello",     "-5\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n", "5\r\nhello!\n", "5\r\nhelloX0\r\n\r\n",     " 5\r\nhello\r\n0\r\n\r\n"};
    for (size_t i = 0; i < sizeof(chunks) / sizeof(*chunks); i++) {
        AUTO_BUFFER request = text_buffer("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
        buffer_append_str(&request, chunks[i]);
        buffer_append_str(&request, SECOND);
        buffer_append_str(&request, "");
        AUTO_FREE char *answer = ask_bytes(buffer_peek(&request));
        if (status_of(answer) != 400)
            fail_msg("%s: %s", chunks[i], answer);
        assert_null(strstr(answer, " 200 "));
    }
    assert_int_equal(owner.asked, 0);
    assert_int_equal(owner.gone, sizeof(chunks) / sizeof(*chunks));
    assert_int_equal(owner.whole, 0);
    assert_int_equal(http_server_held(server), 0);
}

static void chunks_too_large_to_count_are_refused(void **state)
{
    (void)state;
    assert_int_equal(ask_status("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                                "10000000000000005\r\nhello\r\n0\r\n\r\n"),
                     413);
    assert_int_equal(ask_status("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\nhello"),
                     413);
}

/* ---- floods ---------------------------------------------------------------------------------------------- */

static int ask_flood(const char *first, const char *part, size_t times, const char *last)
{
    AUTO_BUFFER request = text_buffer(first);
    for (size_t i = 0; i < times; i++)
        buffer_append_str(&request, part);
    buffer_append_str(&request, last);
    AUTO_FREE char *answer = ask_bytes(buffer_peek(&request));
    return status_of(answer);
}

static void heads_without_room_are_refused(void **state)
{
    (void)state;
    assert_int_equal(ask_flood("GET / HTTP/1.1\r\n" HOST, "A: b\r\n", 5000, "\r\n"), 431);
    assert_int_equal(ask_flood("GET / HTTP/1.1\r\n" HOST "A: ", "b", 50000, "\r\n\r\n"), 431);
    assert_int_equal(ask_flood("GET /", "a", 50000, " HTTP/1.1\r\n" HOST "\r\n"), 414);
    assert_int_equal(ask_flood("GET /?", "a&", 50000, " HTTP/1.1\r\n" HOST "\r\n"), 414);
    assert_int_equal(ask_flood("GET / HTTP/1.1\r\n" HOST "Cookie: ", "a;", 3000, "\r\n\r\n"), 431);
    assert_int_equal(owner.asked, 0);
    assert_int_equal(ask_flood("GET /?", "a&", 2500, " HTTP/1.0\r\n\r\n"), 200);
}

/* Two kilobytes of headers, as real clients send, have room beside an answer. */
static void heads_of_real_clients_have_room(void **state)
{
    (void)state;
    char line[64];
    AUTO_BUFFER request = text_buffer("GET /a?b=c HTTP/1.1\r\n" HOST "Connection: close\r\n");
    for (int i = 0; i < 60; i++) {
        snprintf(line, sizeof(line), "X-Header-%02d: and a value of some length\r\n", i);
        buffer_append_str(&request, line);
    }
    buffer_append_str(&request, "\r\n");
    AUTO_FREE char *answer = ask_bytes(buffer_peek(&request));
    assert_int_equal(status_of(answer), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_two_would_read_differently_is_refused, open_usual, close_server),
        cmocka_unit_test_setup_teardown(bad_chunks_are_refused, open_usual, close_server),
        cmocka_unit_test_setup_teardown(chunks_too_large_to_count_are_refused, open_usual, close_server),
        cmocka_unit_test_setup_teardown(heads_without_room_are_refused, open_usual, close_server),
        cmocka_unit_test_setup_teardown(heads_of_real_clients_have_room, open_usual, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
