#include "client/gateway/api/hub.h"

#include <stdlib.h>

#include "client/gateway/api/native.h"
#include "client/gateway/api/status_streams.h"
#include "client/gateway/api/trajectory_json.h"
#include "client/gateway/sse.h"
#include "common/base/cleanup.h"

enum { STATUS_MS = 1000, LIST_EVERY = 2, LIST_MAX = 200, WAIT_MS = 5000 };

struct page {
    struct list link;
    struct sse sse;
    struct hub *hub;
};

struct hub_stream {
    struct hub *hub;
    char name[65];
    struct tail_reader reader;
};

/* One that has ended, as it is told. */
struct hub_end {
    const struct hub_stream *of;
    struct buffer summary;
};

struct hub {
    struct hubs *hubs;
    struct identity *identity;
    struct list link, pages;
    struct loop_timer *tick;
    unsigned ticks, ends_now; /* ends told in this second */
    uint64_t skipped;
    struct caller_ask status, list;
    struct buffer last_status, last_list; /* for pages that come */
    struct hub_stream *streams[HUB_STREAMS_MAX];
    size_t stream_count;
    struct hub_end history[HUB_HISTORY]; /* a ring */
    size_t history_from, history_count;
};

struct hubs {
    struct gateway *gateway;
    struct tails *tails;
    struct list each;
};

/* ---- telling pages ---------------------------------------------------------------------------------- */

static void tell(struct hub *hub, const char *event, struct slice data)
{
    struct page *page;
    LIST_EACH(page, &hub->pages, link)
        sse_send(&page->sse, event, 0, data);
}

static void keep(struct buffer *last, struct slice text)
{
    buffer_clear(last);
    buffer_append(last, text.data, text.len);
}

static void tell_away(struct hub *hub)
{
    struct buffer said = {0};
    json_text_printf(&said, "{\"text\":%s}", caller_trouble(hub->identity->caller));
    tell(hub, "away", buffer_peek(&said));
    buffer_finish(&said);
}

static struct hub_end *history_at(struct hub *hub, size_t i)
{
    return &hub->history[(hub->history_from + i) % HUB_HISTORY];
}

static void remember(struct hub *hub, const struct hub_stream *of, struct slice summary)
{
    struct hub_end *end = history_at(hub, hub->history_count);
    end->of = of;
    keep(&end->summary, summary);
    if (hub->history_count < HUB_HISTORY)
        hub->history_count++;
    else
        hub->history_from = (hub->history_from + 1) % HUB_HISTORY;
}

/* Those of a stream; the others close up. */
static void forget_history(struct hub *hub, const struct hub_stream *of)
{
    size_t kept = 0;
    for (size_t i = 0; i < hub->history_count; i++) {
        struct hub_end *end = history_at(hub, i), *to = history_at(hub, kept), before = *to;
        if (end->of == of)
            continue;
        *to = *end;
        *end = before;
        kept++;
    }
    hub->history_count = kept;
}

static void send_history(struct page *page)
{
    struct hub *hub = page->hub;
    struct buffer all = {0};
    buffer_append_str(&all, "[");
    for (size_t i = 0; i < hub->history_count; i++) {
        const struct buffer *one = &history_at(hub, i)->summary;
        buffer_append_str(&all, i ? "," : "");
        buffer_append(&all, one->data, one->len);
    }
    buffer_append_str(&all, "]");
    sse_send_text(&page->sse, "history", &all);
}

/* ---- streams' ends -------------------------------------------------------------------------------------- */

static void on_end(void *arg, struct told *told)
{
    struct hub_stream *stream = arg;
    struct hub *hub = stream->hub;
    struct refusal no;
    if (told->summary.len == 0 && !trajectory_summary(told->message, &told->summary, &no)) {
        buffer_clear(&told->summary);
        return;
    }
    remember(hub, stream, buffer_peek(&told->summary));
    if (stream->reader.is_live && hub->ends_now < HUB_ENDS_MAX) {
        hub->ends_now++;
        tell(hub, "ended", buffer_peek(&told->summary));
    } else if (stream->reader.is_live) {
        hub->skipped++;
    }
}

/* What had ended before is told at once. */
static void on_up_to_date(void *arg, const struct msg_stream_head *head)
{
    struct hub_stream *stream = arg;
    struct page *page;
    (void)head;
    LIST_EACH(page, &stream->hub->pages, link)
        send_history(page);
}

/* The newest of a stream are enough. */
static uint64_t begins_at(uint64_t first, uint64_t head)
{
    const uint64_t back = HUB_HISTORY / 2;
    return head > back && head - back > first ? head - back : first;
}

static uint64_t on_replaced(void *arg, const struct msg_stream_head *head)
{
    const struct hub_stream *stream = arg;
    struct buffer said = {0};
    json_text_printf(&said, "{\"stream\":%s}", stream->name);
    tell(stream->hub, "replaced", buffer_peek(&said));
    buffer_finish(&said);
    forget_history(stream->hub, stream);
    return begins_at(head->first, head->head);
}

static void on_failed(void *arg, const struct msg_refused *refused)
{
    (void)arg;
    (void)refused; /* numbers were forgotten while it read, or the stream is another's: the next status tells */
}

static struct hub_stream *find_stream(const struct hub *hub, const char *name)
{
    for (size_t i = 0; i < hub->stream_count; i++)
        if (strcmp(hub->streams[i]->name, name) == 0)
            return hub->streams[i];
    return NULL;
}

/* One that could not go on, as its trainer acknowledged what was not fetched yet. */
static void follow_again(struct hub_stream *stream, uint64_t first, uint64_t head)
{
    const struct reader_plan plan = stream->reader.plan;
    const uint64_t next = stream->reader.next;
    if (!stream->reader.tail)
        tail_read(stream->hub->hubs->tails, stream->hub->identity, stream->name,
                  next > first && next <= head + 1 ? next : first, &plan, &stream->reader);
}

static void follow(void *arg, const char *name, uint64_t first, uint64_t head)
{
    struct hub *hub = arg;
    struct hub_stream *stream = find_stream(hub, name);
    if (stream) {
        follow_again(stream, first, head);
        return;
    }
    if (hub->stream_count == HUB_STREAMS_MAX || strlen(name) >= sizeof(stream->name) ||
        !(stream = calloc(1, sizeof(*stream))))
        return;
    const struct reader_plan plan = {
        .took = on_end, .stands = on_up_to_date, .failed = on_failed, .replaced = on_replaced, .arg = stream};
    stream->hub = hub;
    snprintf(stream->name, sizeof(stream->name), "%s", name);
    if (tail_read(hub->hubs->tails, hub->identity, name, begins_at(first, head), &plan, &stream->reader))
        hub->streams[hub->stream_count++] = stream;
    else
        free(stream);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

static void on_status(void *arg, const struct answer *answer)
{
    struct hub *hub = arg;
    if (!answer || answer->id != MSG_status) {
        tell_away(hub);
        return;
    }
    keep(&hub->last_status, answer->as.status.json);
    tell(hub, "status", answer->as.status.json);
    status_streams_each(answer->as.status.json, follow, hub);
}

static void on_list(void *arg, const struct answer *answer)
{
    struct hub *hub = arg;
    if (!answer || answer->id != MSG_rollouts)
        return;
    keep(&hub->last_list, answer->as.rollouts.json);
    tell(hub, "live", answer->as.rollouts.json);
}

static void ask_status(struct hub *hub)
{
    struct refusal no;
    const struct msg_status_get in = {.tag = caller_next_tag(hub->identity->caller)};
    hub->status.answered = on_status;
    hub->status.arg = hub;
    if (!hub->status.caller)
        caller_ask(hub->identity->caller, &hub->status, MSG_status_get, &in, in.tag, WAIT_MS, &no);
}

static void ask_list(struct hub *hub)
{
    struct refusal no;
    const struct msg_rollout_list in = {
        .tag = caller_next_tag(hub->identity->caller), .limit = LIST_MAX, .has_limit = true};
    hub->list.answered = on_list;
    hub->list.arg = hub;
    if (!hub->list.caller)
        caller_ask(hub->identity->caller, &hub->list, MSG_rollout_list, &in, in.tag, WAIT_MS, &no);
}

static void tell_skipped(struct hub *hub)
{
    struct buffer said = {0};
    if (hub->skipped == 0)
        return;
    json_text_printf(&said, "{\"count\":%u}", hub->skipped);
    tell(hub, "skipped", buffer_peek(&said));
    buffer_finish(&said);
    hub->skipped = 0;
}

static void on_tick(void *arg)
{
    struct hub *hub = arg;
    hub->tick = loop_after(hub->hubs->gateway->loop, STATUS_MS, on_tick, hub);
    hub->ends_now = 0;
    tell_skipped(hub);
    ask_status(hub);
    if (hub->ticks++ % LIST_EVERY == 0)
        ask_list(hub);
}

/* ---- hubs and pages ------------------------------------------------------------------------------------------- */

static void drop_hub(struct hub *hub)
{
    list_remove(&hub->link);
    loop_cancel(hub->hubs->gateway->loop, &hub->tick);
    caller_forget(&hub->status);
    caller_forget(&hub->list);
    for (size_t i = 0; i < hub->stream_count; i++) {
        tail_leave(&hub->streams[i]->reader);
        free(hub->streams[i]);
    }
    for (size_t i = 0; i < HUB_HISTORY; i++)
        buffer_finish(&hub->history[i].summary);
    buffer_finish(&hub->last_status);
    buffer_finish(&hub->last_list);
    identities_give_back(hub->hubs->gateway->identities, hub->identity);
    free(hub);
}

static struct hub *find_hub(struct hubs *hubs, struct identity *identity)
{
    struct hub *hub;
    LIST_EACH(hub, &hubs->each, link)
        if (hub->identity == identity)
            return hub;
    hub = calloc(1, sizeof(*hub));
    if (!hub)
        return NULL;
    hub->hubs = hubs;
    hub->identity = identity;
    identity->uses++;
    list_init(&hub->pages);
    list_push_back(&hubs->each, &hub->link);
    on_tick(hub);
    return hub;
}

static void end_page(struct http_call *call)
{
    struct page *page = call->state;
    struct hub *hub = page->hub;
    list_remove(&page->link);
    sse_finish(&page->sse);
    free(page);
    if (list_is_empty(&hub->pages))
        drop_hub(hub);
}

void hub_run(struct http_call *call)
{
    const struct native *native = call->kept;
    struct page *page = calloc(1, sizeof(*page));
    struct hub *hub = page ? find_hub(native->hubs, call->identity) : NULL;
    if (!hub) {
        free(page);
        http_call_refuse_memory(call);
        return;
    }
    page->hub = hub;
    list_push_back(&hub->pages, &page->link);
    call->state = page;
    call->end = end_page;
    sse_begin(&page->sse, call);
    if (hub->last_status.len > 0)
        sse_send(&page->sse, "status", 0, buffer_peek(&hub->last_status));
    if (hub->last_list.len > 0)
        sse_send(&page->sse, "live", 0, buffer_peek(&hub->last_list));
    send_history(page);
}

struct hubs *hubs_open(struct gateway *gateway, struct tails *tails)
{
    struct hubs *hubs = calloc(1, sizeof(*hubs));
    if (!hubs)
        return NULL;
    hubs->gateway = gateway;
    hubs->tails = tails;
    list_init(&hubs->each);
    return hubs;
}

void hubs_close(struct hubs **handle)
{
    struct hubs *hubs = take_ptr(handle);
    struct hub *hub;
    if (!hubs)
        return;
    LIST_EACH(hub, &hubs->each, link)
        drop_hub(hub);
    free(hubs);
}
