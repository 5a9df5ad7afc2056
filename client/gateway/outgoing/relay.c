#include "client/gateway/outgoing/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/outgoing/transfers.h"
#include "common/base/cleanup.h"
#include "common/http/exchange.h"
#include "common/http/exchange_answer.h"
#include "common/http/http_server.h"

enum { CONNECT_MS = 10000, ALIVE_S = 30, ALIVE_AGAIN_S = 10, STATUS_FIRST = 200, STATUS_LAST = 599 };

struct relays {
    struct loop *loop;
    struct transfers *transfers;
    size_t count;
};

struct relay {
    struct relays *relays;
    struct relay_plan plan;
    struct transfer transfer;
    struct curl_slist *headers;
    struct buffer body, out; /* of the request, of the answer: what was sent on of each is ... */
    size_t body_at, out_at;  /* ... up to here */
    size_t counted;          /* bytes that the server knows of */
    struct loop_soon soon;   /* goes on with what was paused */
    bool is_answered, is_paused, is_over, is_broken;
    char error[CURL_ERROR_SIZE];
};

static void recount(struct relay *relay)
{
    const size_t now = relay->body.len + relay->out.len;
    http_server_count(relay->plan.server, relay->counted, now);
    relay->counted = now;
}

/* What was not sent on yet, and how much that was; once all was, it is let go: many may wait. */
static size_t take(struct relay *relay, struct buffer *from, size_t *from_at, char *into, size_t max)
{
    const size_t left = from->len - *from_at, len = left < max ? left : max;
    if (len == 0)
        return 0;
    memcpy(into, from->data + *from_at, len);
    *from_at += len;
    if (len == left) {
        buffer_finish(from);
        *from_at = 0;
        recount(relay);
    }
    return len;
}

/* ---- what is asked ----------------------------------------------------------------------------------------- */

static size_t on_ask(char *into, size_t size, size_t count, void *arg)
{
    struct relay *relay = arg;
    return take(relay, &relay->body, &relay->body_at, into, size * count);
}

/* ---- what is answered ---------------------------------------------------------------------------------------- */

static const char *type_of(CURL *easy)
{
    static const char *const known[] = {"application/json", "text/event-stream"};
    char *said = NULL;
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &said);
    for (size_t i = 0; said && i < sizeof(known) / sizeof(*known); i++)
        if (strncasecmp(said, known[i], strlen(known[i])) == 0)
            return known[i];
    return "text/plain; charset=utf-8";
}

static void pass_header(const struct relay *relay, const char *name)
{
    struct curl_header *header;
    if (curl_easy_header(relay->transfer.easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        exchange_set_header(relay->plan.exchange, name, header->value);
}

static ssize_t read_out(void *arg, uint64_t at, char *into, size_t max)
{
    struct relay *relay = arg;
    const size_t len = take(relay, &relay->out, &relay->out_at, into, max);
    (void)at;
    if (len == 0)
        return relay->is_broken ? EXCHANGE_READ_FAILED : relay->is_over ? EXCHANGE_READ_END : 0;
    if (relay->is_paused && relay->out.len - relay->out_at < RELAY_ROOM / 2)
        loop_post(relay->relays->loop, &relay->soon);
    return (ssize_t)len;
}

/* False: it is no answer that can be passed on. */
static bool answer(struct relay *relay)
{
    CURL *easy = relay->transfer.easy;
    struct exchange *exchange = relay->plan.exchange;
    curl_off_t len = -1;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &len);
    if (status < STATUS_FIRST || status > STATUS_LAST) {
        snprintf(relay->error, sizeof(relay->error), "it answered with the status %ld", status);
        return false;
    }
    relay->is_answered = true;
    pass_header(relay, "Cache-Control");
    pass_header(relay, "Retry-After");
    exchange_set_header(exchange, "X-Accel-Buffering", "no");
    exchange_set_header(exchange, "X-Content-Type-Options", "nosniff");
    exchange_source(exchange, (int)status, type_of(easy), len < 0 ? EXCHANGE_SIZE_UNKNOWN : (uint64_t)len, read_out,
                    relay);
    return true;
}

static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
    struct relay *relay = arg;
    const size_t len = size * count, unsent = relay->out.len - relay->out_at;
    if (!relay->is_answered && !answer(relay))
        return 0;
    relay->is_paused = unsent > 0 && unsent + len > RELAY_ROOM;
    if (relay->is_paused)
        return CURL_WRITEFUNC_PAUSE;
    if (relay->out_at > 0) {
        memmove(relay->out.data, relay->out.data + relay->out_at, unsent);
        relay->out.len = unsent;
        relay->out_at = 0;
    }
    if (!buffer_append(&relay->out, data, len))
        return 0;
    recount(relay);
    exchange_more(relay->plan.exchange);
    return len;
}

static void on_soon(void *arg)
{
    struct relay *relay = arg;
    if (relay->is_paused && relay->transfer.is_under_way)
        curl_easy_pause(relay->transfer.easy, CURLPAUSE_CONT);
}

static void on_ended(void *arg, CURLcode code)
{
    struct relay *relay = arg;
    if (!relay->is_answered && (code != CURLE_OK || !answer(relay))) {
        relay->plan.failed(relay->plan.arg, relay->error[0] ? relay->error : curl_easy_strerror(code));
        return;
    }
    relay->is_over = code == CURLE_OK;
    relay->is_broken = !relay->is_over;
    exchange_more(relay->plan.exchange);
}

/* ---- from its beginning to its end --------------------------------------------------------------------------- */

/* A request goes out once: where a connection that lay idle had been closed meanwhile, it would go out again. */
static void set_connection(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)ALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)ALIVE_AGAIN_S);
}

static bool add_header(struct relay *relay, const char *line)
{
    struct curl_slist *more = curl_slist_append(relay->headers, line);
    if (more)
        relay->headers = more;
    return more != NULL;
}

static bool set_headers(struct relay *relay)
{
    const char *type = exchange_header(relay->plan.exchange, "Content-Type");
    char line[256];
    const bool is_short = type && snprintf(line, sizeof(line), "Content-Type: %s", type) < (int)sizeof(line);
    return add_header(relay, "Expect:") && add_header(relay, is_short ? line : "Content-Type: application/json") &&
           curl_easy_setopt(relay->transfer.easy, CURLOPT_HTTPHEADER, relay->headers) == CURLE_OK;
}

static bool prepare(struct relay *relay)
{
    CURL *easy = relay->transfer.easy;
    if (!easy || !set_headers(relay))
        return false;
    set_connection(easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, relay->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, relay);
    if (strcmp(exchange_method(relay->plan.exchange), "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)relay->body.len);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_ask);
        curl_easy_setopt(easy, CURLOPT_READDATA, relay);
    }
    return transfers_begin(relay->relays->transfers, &relay->transfer);
}

struct relay *relay_begin(struct relays *relays, const struct relay_plan *plan)
{
    struct relay *relay = relays->count < RELAYS_MAX ? calloc(1, sizeof(*relay)) : NULL;
    if (!relay)
        return NULL;
    *relay = (struct relay){.relays = relays, .plan = *plan, .body = exchange_take_body(plan->exchange)};
    relay->soon = (struct loop_soon){.run = on_soon, .arg = relay};
    relay->transfer = (struct transfer){.easy = transfers_handle(plan->url), .ended = on_ended, .arg = relay};
    relays->count++;
    recount(relay);
    if (!prepare(relay))
        relay_end(&relay);
    return relay;
}

void relay_end(struct relay **handle)
{
    struct relay *relay = take_ptr(handle);
    if (!relay)
        return;
    transfers_give_up(relay->relays->transfers, &relay->transfer);
    curl_easy_cleanup(relay->transfer.easy);
    curl_slist_free_all(relay->headers);
    loop_unpost(relay->relays->loop, &relay->soon);
    buffer_finish(&relay->body);
    buffer_finish(&relay->out);
    recount(relay);
    relay->relays->count--;
    free(relay);
}

struct relays *relays_open(struct loop *loop)
{
    struct relays *relays = calloc(1, sizeof(*relays));
    if (!relays)
        return NULL;
    relays->loop = loop;
    relays->transfers = transfers_open(loop);
    if (!relays->transfers)
        relays_close(&relays);
    return relays;
}

void relays_close(struct relays **handle)
{
    struct relays *relays = take_ptr(handle);
    if (!relays)
        return;
    transfers_close(&relays->transfers);
    free(relays);
}
