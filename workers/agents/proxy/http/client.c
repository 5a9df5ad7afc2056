#include "workers/agents/proxy/http/client.h"

#include <string.h>

#include "common/http/exchange_answer.h"
#include "workers/agents/proxy/http/call.h"

/* The next bytes of the answer; none yet: it is asked again. */
static ssize_t read_answer(void *arg, uint64_t at, char *into, size_t max)
{
    struct client *client = arg;
    const struct call *call = client->call;
    const size_t left = call->out.len - (size_t)at, len = left < max ? left : max;
    if (left == 0)
        return call->is_done ? EXCHANGE_READ_END : 0;
    memcpy(into, call->out.data + at, len);
    client->sent = (size_t)at + len;
    return (ssize_t)len;
}

static void answer(struct client *client)
{
    const struct call *call = client->call;
    exchange_set_header(client->exchange, "Cache-Control", "no-store");
    exchange_source(client->exchange, call->status, call->is_events ? "text/event-stream" : "application/json",
                    call->is_done ? call->out.len : EXCHANGE_SIZE_UNKNOWN, read_answer, client);
}

void client_go_on(struct client *client)
{
    if (exchange_is_answered(client->exchange))
        exchange_more(client->exchange);
    else if (client->call->status != 0)
        answer(client);
    else if (!client->server)
        exchange_drop(client->exchange);
}
