/* Requests with bytes changed, left out, doubled and cut, a few thousand: of whatever they become nothing is left. */
#include "tests/common/http/http_world.h"

#include "common/base/prng.h"

enum { REQUESTS = 4000, AT_ONCE = 50 };

static uint64_t chance; /* the same each time, but where SLUICE_NOISE says another beginning */

static size_t below(size_t n) { return (size_t)(prng_next(&chance) % n); }

static const char *const requests[] = {
    "GET /a?b=c&d=%20 HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\n\r\n",
    "POST /secret HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n\x1f\x8b\x08....",
    "HEAD /large?size=70000 HTTP/1.1\r\nHost: h\r\nCookie: a=b; c=\"d\"\r\n\r\n",
    "GET /large?size=70000 HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
    "GET /events HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /wait HTTP/1.0\r\n\r\n",
};
static const char *const parts[] = {"\r\n",
                                    "\n",
                                    "\r",
                                    ":",
                                    " ",
                                    "\t",
                                    "\r\n ",
                                    "\r\n\r\n",
                                    "0",
                                    "%00",
                                    "/../",
                                    "\x7f",
                                    "chunked",
                                    "\xff",
                                    "?",
                                    "&",
                                    "=",
                                    ";",
                                    "HTTP/",
                                    ",",
                                    "Host: ",
                                    "Content-Length: 3\r\n",
                                    "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"};

static void change(struct buffer *bytes)
{
    const size_t at = below(bytes->len), len = below(6);
    const char *part = parts[below(sizeof(parts) / sizeof(*parts))];
    AUTO_BUFFER changed = {0};
    buffer_append(&changed, bytes->data, at);
    switch (below(4)) {
    case 0: /* put in */
        buffer_append_str(&changed, part);
        buffer_append(&changed, bytes->data + at, bytes->len - at);
        break;
    case 1: /* left out */
        if (at + len < bytes->len)
            buffer_append(&changed, bytes->data + at + len, bytes->len - at - len);
        break;
    case 2: /* doubled */ buffer_append(&changed, bytes->data + at / 2, bytes->len - at / 2); break;
    default: /* another byte */
        buffer_append(&changed, &(uint8_t){(uint8_t)prng_next(&chance)}, 1);
        buffer_append(&changed, bytes->data + at + 1, bytes->len - at - 1);
    }
    buffer_finish(bytes);
    *bytes = changed;
    changed = (struct buffer){0};
}

static void send_twice(struct exchange *exchange)
{
    if (strcmp(exchange_path(exchange), "/events") != 0) {
        answer_text(exchange, 200, "fine");
        return;
    }
    exchange_stream(exchange, 200, "text/event-stream");
    exchange_send(exchange, slice_from_str("one"));
    exchange_send(exchange, slice_from_str("two"));
    if (below(2))
        exchange_end(exchange);
    else if (below(2))
        exchange_drop(exchange);
}

static bool is_due;

static void on_due(void *arg)
{
    (void)arg;
    is_due = true;
}

static bool was_due(const void *arg)
{
    (void)arg;
    return is_due;
}

static void let_it_run(int64_t ms)
{
    is_due = false;
    loop_after(loop, ms, on_due, NULL);
    await("a moment", was_due, NULL);
}

static void say_some(struct client *client)
{
    AUTO_BUFFER bytes = text_buffer(requests[below(sizeof(requests) / sizeof(*requests))]);
    for (size_t changes = below(4); changes > 0 && bytes.len > 0; changes--)
        change(&bytes);
    client_open(client);
    const size_t cut = below(bytes.len + 1);
    client_say_bytes(client, slice_of(bytes.data, cut));
    if (below(4) == 0)
        let_it_run(0);
    if (below(8) > 0)
        client_say_bytes(client, slice_of(bytes.data + cut, bytes.len - cut));
}

static void nothing_is_left_of_noise(void **state)
{
    (void)state;
    static struct client clients[AT_ONCE];
    const char *seed = getenv("SLUICE_NOISE");
    chance = seed ? strtoull(seed, NULL, 10) : 20;
    on_other = send_twice;
    for (size_t i = 0; i < REQUESTS; i += AT_ONCE) {
        for (size_t k = 0; k < AT_ONCE; k++)
            say_some(&clients[k]);
        let_it_run(1);
        for (size_t k = 0; k < owner.waiting_count; k++)
            if (below(2) && !exchange_is_answered(owner.waiting[k]))
                answer_text(owner.waiting[k], 200, "later");
        let_it_run(0);
        for (size_t k = 0; k < AT_ONCE; k++)
            client_close(&clients[k]);
    }
    await("the end of all connections", is_empty, NULL);
    assert_true(owner.gone >= owner.heard); /* and those that the server itself refused */
    assert_int_equal(http_server_held(server), 0);
    assert_int_equal(owner.waiting_count, 0);
    assert_true(owner.asked > REQUESTS / 10);
}

static int open_impatient(void **state)
{
    (void)state;
    struct http_server_plan plan = usual_plan();
    plan.idle_ms = 500;
    open_server(&plan);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_left_of_noise, open_impatient, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
