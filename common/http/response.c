#include "common/http/response.h"

#include <microhttpd.h>
#include <string.h>

#include "common/http/exchange_wait.h"

enum {
    AT_ONCE_MAX = 16 << 10, /* bytes of a whole answer that are written with its head */
    BLOCK = 16 << 10,       /* of a larger one, at a time */
    STREAM_BLOCK = 1 << 10  /* where a stream is not sent in chunks; those are made in the connection's own memory */
};

_Static_assert(EXCHANGE_READ_END == MHD_CONTENT_READER_END_OF_STREAM, "MHD's own");
_Static_assert(EXCHANGE_READ_FAILED == MHD_CONTENT_READER_END_WITH_ERROR, "MHD's own");

/*
 * MHD forgets a connection that it closes in its reader: no event comes for it any more. But in each run it looks at
 * all that have a time-out of their own, and then finds it closed.
 */
static ssize_t close_with(struct exchange *exchange, ssize_t why)
{
    MHD_set_connection_option(exchange->connection->of, MHD_CONNECTION_OPTION_TIMEOUT, 3600U);
    loop_post(exchange->server->loop, &exchange->connection->daemon->soon);
    return why;
}

static bool is_in_chunks(const struct exchange *exchange)
{
    return exchange->size == EXCHANGE_SIZE_UNKNOWN && !exchange->is_old;
}

/* The next bytes of the answer; none yet: the exchange sleeps. */
static ssize_t read_more(void *arg, uint64_t at, char *into, size_t max)
{
    struct exchange *exchange = arg;
    if (exchange->is_dropped)
        return close_with(exchange, EXCHANGE_READ_FAILED);
    const ssize_t len = exchange->read(exchange->read_arg, at, into, max);
    exchange->is_all_read = len == EXCHANGE_READ_END || (len > 0 && at + (size_t)len == exchange->size) ||
                            (exchange->is_ended && exchange_unsent(exchange) == 0);
    if (len == 0 && (exchange->is_hung_up || exchange->is_dropped))
        return close_with(exchange, EXCHANGE_READ_FAILED);
    if (len == EXCHANGE_READ_FAILED || (len == EXCHANGE_READ_END && !is_in_chunks(exchange)))
        return close_with(exchange, len);
    if (len == 0)
        exchange_sleep(exchange);
    if (len > 0) {
        exchange->sent = at + (size_t)len;
        http_connections_step(&exchange->server->connections, exchange->connection, false);
    }
    return len;
}

static struct MHD_Response *make(struct exchange *exchange)
{
    /* It would end the chunks of a body that it does not send, and makes nothing of nothing. */
    if (exchange->size == 0 || (exchange->size == EXCHANGE_SIZE_UNKNOWN && exchange_is_head(exchange)))
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    const bool is_whole = exchange->size == exchange->out.len && exchange->out_at == 0;
    if (is_whole && exchange->size <= AT_ONCE_MAX) {
        exchange->sent = exchange_is_head(exchange) ? 0 : exchange->size;
        return MHD_create_response_from_buffer(exchange->out.len, exchange->out.data, MHD_RESPMEM_PERSISTENT);
    }
    const size_t block = exchange->size == EXCHANGE_SIZE_UNKNOWN ? STREAM_BLOCK
                         : exchange->size < BLOCK                ? exchange->size
                                                                 : BLOCK;
    return MHD_create_response_from_callback(exchange->size, block, read_more, exchange, NULL);
}

static bool add_headers(const struct exchange *exchange, struct MHD_Response *response)
{
    const char *at = (const char *)exchange->headers.data, *const end = at ? at + exchange->headers.len : NULL;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (MHD_add_response_header(response, at, value) != MHD_YES)
            return false;
        at = value + strlen(value) + 1;
    }
    return !exchange->is_last || MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
}

bool response_queue(struct exchange *exchange)
{
    struct MHD_Response *response = make(exchange);
    if (!response)
        return false;
    exchange->is_queued = true;
    http_connections_step(&exchange->server->connections, exchange->connection, false);
    const bool done = add_headers(exchange, response) &&
                      MHD_queue_response(exchange->connection->of, (unsigned)exchange->status, response) == MHD_YES;
    MHD_destroy_response(response);
    buffer_finish(&exchange->headers);
    return done;
}
