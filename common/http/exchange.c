#include "common/http/exchange.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/http/exchange_inside.h"

/* ---- its life ------------------------------------------------------------------------------------ */

struct exchange *exchange_create(struct http_connection *connection, const char *target)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (!exchange)
        return NULL;
    exchange->connection = connection;
    exchange->server = connection->daemon->server;
    if (!target_parse(target, exchange->server->plan.takes_encoded_slashes, &exchange->target)) {
        free(exchange);
        return NULL;
    }
    connection->exchange = exchange;
    return exchange;
}

void exchange_destroy(struct exchange *exchange)
{
    buffer_finish(&exchange->body);
    buffer_finish(&exchange->out);
    exchange_recount(exchange);
    buffer_finish(&exchange->headers);
    target_finish(&exchange->target);
    exchange->connection->exchange = NULL;
    free(exchange);
}

void exchange_recount(struct exchange *exchange)
{
    const size_t now = exchange->body.capacity + exchange->out.capacity;
    http_server_count(exchange->server, exchange->counted, now);
    exchange->counted = now;
}

/* ---- what was asked ---------------------------------------------------------------------------------- */

bool exchange_is_head(const struct exchange *exchange) { return strcmp(exchange->method, "HEAD") == 0; }

const char *exchange_method(const struct exchange *exchange)
{
    return exchange_is_head(exchange) ? "GET" : exchange->method;
}

const char *exchange_path(const struct exchange *exchange) { return exchange->target.path; }

const char *exchange_target(const struct exchange *exchange) { return exchange->target.raw; }

const char *exchange_query(const struct exchange *exchange, const char *name)
{
    return target_query(&exchange->target, name);
}

size_t exchange_query_count(const struct exchange *exchange, const char *name)
{
    return target_query_count(&exchange->target, name);
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection->of, MHD_HEADER_KIND, name);
}

struct counted {
    const char *name;
    size_t count;
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct counted *counted = arg;
    (void)kind;
    (void)value;
    counted->count += strcasecmp(name, counted->name) == 0;
    return MHD_YES;
}

size_t exchange_header_count(const struct exchange *exchange, const char *name)
{
    struct counted counted = {.name = name};
    MHD_get_connection_values(exchange->connection->of, MHD_HEADER_KIND, count_header, &counted);
    return counted.count;
}

void exchange_peer_address(const struct exchange *exchange, char ret[EXCHANGE_ADDRESS_SIZE])
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(exchange->connection->of,
                                                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    char host[INET6_ADDRSTRLEN] = "";
    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(ret, EXCHANGE_ADDRESS_SIZE, "%s:%u", host, ntohs(in->sin_port));
    } else if (address && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;
        inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
        snprintf(ret, EXCHANGE_ADDRESS_SIZE, "[%s]:%u", host, ntohs(in->sin6_port));
    } else {
        snprintf(ret, EXCHANGE_ADDRESS_SIZE, "unix");
    }
}

struct slice exchange_body(const struct exchange *exchange)
{
    return exchange->is_asked ? buffer_peek(&exchange->body) : slice_of(NULL, 0);
}

struct buffer exchange_take_body(struct exchange *exchange)
{
    const struct buffer body = exchange->body;
    exchange->body = (struct buffer){0};
    exchange_recount(exchange);
    return body;
}

/* ---- what the owner notes of it ------------------------------------------------------------------------ */

void exchange_set_user(struct exchange *exchange, void *user) { exchange->user = user; }

void *exchange_user(const struct exchange *exchange) { return exchange->user; }

int exchange_status(const struct exchange *exchange) { return exchange->status; }

uint64_t exchange_sent(const struct exchange *exchange) { return exchange->sent; }
