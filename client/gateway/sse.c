#include "client/gateway/sse.h"

#include <errno.h>
#include <stdlib.h>

enum { ROOM_BYTES = 256 << 10, RETRY_MS = 1000 };

static void drop(struct sse *sse)
{
    sse->is_dropped = true;
    sse->call->gateway->counts.sse_dropped++;
    exchange_drop(sse->call->exchange);
}

static void send(struct sse *sse, struct slice bytes)
{
    if (!sse->is_dropped && !sse->is_ended && !exchange_send(sse->call->exchange, bytes))
        drop(sse);
}

static void on_alive(void *arg)
{
    struct sse *sse = arg;
    sse->alive = loop_after(sse->call->gateway->loop, SSE_ALIVE_MS, on_alive, sse);
    const uint64_t sent = exchange_sent(sse->call->exchange);
    if (!sse->is_dropped && !sse_has_room(sse) && sent == sse->sent_before)
        drop(sse); /* it has taken nothing of much for so long */
    sse->sent_before = sent;
    send(sse, slice_from_str(":\n\n"));
}

void sse_begin(struct sse *sse, struct http_call *call)
{
    char retry[32];
    *sse = (struct sse){.call = call};
    call->gateway->counts.sse_clients++;
    call->is_stream = true;
    exchange_set_header(call->exchange, "Cache-Control", "no-store");
    exchange_set_header(call->exchange, "X-Accel-Buffering", "no");
    exchange_stream(call->exchange, 200, "text/event-stream");
    snprintf(retry, sizeof(retry), "retry: %d\n\n", RETRY_MS);
    send(sse, slice_from_str(retry));
    sse->alive = loop_after(call->gateway->loop, SSE_ALIVE_MS, on_alive, sse);
}

static void append_line(struct buffer *out, struct slice data)
{
    for (size_t at = 0; at < data.len;) {
        const uint8_t *end = data.data + at;
        while (end < data.data + data.len && *end != '\n' && *end != '\r')
            end++;
        buffer_append(out, data.data + at, (size_t)(end - data.data) - at);
        at = (size_t)(end - data.data);
        if (at < data.len) {
            buffer_append(out, " ", 1);
            at++;
        }
    }
}

void sse_append(struct buffer *out, const char *event, uint64_t id, struct slice data)
{
    if (id)
        buffer_printf(out, "id: %llu\n", (unsigned long long)id);
    buffer_printf(out, "event: %s\ndata: ", event);
    append_line(out, data);
    buffer_append_str(out, "\n\n");
}

void sse_send_all(struct sse *sse, struct buffer *events)
{
    if (!events->failed)
        send(sse, buffer_peek(events));
    buffer_finish(events);
}

void sse_send(struct sse *sse, const char *event, uint64_t id, struct slice data)
{
    struct buffer out = {0};
    sse_append(&out, event, id, data);
    sse_send_all(sse, &out);
}

void sse_send_text(struct sse *sse, const char *event, struct buffer *data)
{
    if (!data->failed)
        sse_send(sse, event, 0, buffer_peek(data));
    buffer_finish(data);
}

bool sse_has_room(const struct sse *sse)
{
    return !sse->is_dropped && exchange_unsent(sse->call->exchange) < ROOM_BYTES;
}

void sse_end(struct sse *sse)
{
    if (!sse->is_dropped && !sse->is_ended)
        exchange_end(sse->call->exchange);
    sse->is_ended = true;
}

void sse_finish(struct sse *sse)
{
    if (!sse->call)
        return;
    loop_cancel(sse->call->gateway->loop, &sse->alive);
    sse->call->gateway->counts.sse_clients--;
    sse->call = NULL;
}

bool sse_last_id(struct http_call *call, uint64_t otherwise, uint64_t *ret)
{
    const char *text = exchange_header(call->exchange, "Last-Event-ID");
    char *end = NULL;
    *ret = otherwise;
    if (!text || !*text)
        return true;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && *ret < INT64_MAX)
        return true;
    http_call_refuse(call, 400, refusal_wire(REFUSAL_WRONG_TYPE), "Last-Event-ID",
                     "Last-Event-ID must be a number of ours");
    return false;
}
