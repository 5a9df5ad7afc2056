#include "client/gateway/broker/caller.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/containers/list.h"
#include "common/containers/table.h"
#include "common/digest/digest.h"

enum {
    ANSWERS_A_TURN = 256, /* others of the loop have their turn, too */
    WATCH_MS = 5000,      /* how often a watch is renewed */
    TICK_MS = 100         /* while requests are under way: what is due is sent, or over */
};

struct caller {
    struct loop *loop;
    struct sluice_client *client;
    char mark[DIGEST_SIZE];
    struct table asks;     /* by tag */
    struct heap due, ends; /* when to send it again, when it is over */
    uint64_t watched_made; /* FRONT, as it is watched */
    struct loop_watch *front, *monitor;
    struct loop_timer *tick;
    struct loop_soon again;
};

static struct slice name_of(const struct caller_ask *ask)
{
    return slice_of(&ask->request.tag, sizeof(ask->request.tag));
}

/* ---- its sockets -------------------------------------------------------------------------------- */

static void on_event(void *arg, uint32_t events)
{
    (void)arg;
    (void)events; /* caller_work reads, before the loop waits again */
}

static struct loop_watch *watch(struct caller *caller, void *socket)
{
    int fd = -1;
    size_t size = sizeof(fd);
    if (!socket || zmq_getsockopt(socket, ZMQ_FD, &fd, &size) != 0)
        return NULL;
    return loop_watch(caller->loop, fd, EPOLLIN, on_event, NULL);
}

/* FRONT is made anew where its handshake was refused (client/lib/link.h). */
static void watch_front(struct caller *caller)
{
    if (caller->watched_made == caller->client->link.made)
        return;
    loop_unwatch(caller->loop, &caller->front);
    loop_unwatch(caller->loop, &caller->monitor);
    caller->front = watch(caller, caller->client->front);
    caller->monitor = watch(caller, caller->client->link.handshakes.monitor);
    caller->watched_made = caller->client->link.made;
}

static void run_again(void *arg) { (void)arg; }

static void on_tick(void *arg)
{
    struct caller *caller = arg;
    caller->tick = caller->asks.count > 0 ? loop_after(caller->loop, TICK_MS, on_tick, caller) : NULL;
}

/* ---- requests ------------------------------------------------------------------------------------- */

void caller_forget(struct caller_ask *ask)
{
    struct caller *caller = take_ptr(&ask->caller);
    if (!caller)
        return;
    table_take(&caller->asks, name_of(ask));
    heap_remove(&caller->due, &ask->due);
    heap_remove(&caller->ends, &ask->end);
    request_finish(&ask->request);
}

uint64_t caller_next_tag(struct caller *caller) { return ++caller->client->last_tag; }

/* Encoding refuses by name what a client's own sentence would only tell. */
static bool encode(struct request *request, enum message_id id, const void *in, int64_t again_ms, struct refusal *no)
{
    buffer_clear(&request->bytes);
    if (!message_encode(id, in, &request->bytes, no))
        return false;
    request->send_at_ms = 0;
    request->again_ms = again_ms;
    return !request->bytes.failed || refuse(no, REFUSAL_QUEUE_FULL, "", "out of memory");
}

static bool begin(struct caller *caller, struct caller_ask *ask, enum message_id id, const void *in, int64_t ends_ms,
                  struct refusal *no)
{
    ask->is_fetch = id == MSG_stream_fetch;
    ask->ends_ms = ends_ms;
    if (!encode(&ask->request, id, in, ask->is_lasting ? WATCH_MS : REQUEST_AGAIN_FIRST_MS, no)) {
        request_finish(&ask->request);
        return false;
    }
    ask->caller = caller;
    if (table_put(&caller->asks, name_of(ask), ask) && heap_put(&caller->due, &ask->due, 0) &&
        heap_put(&caller->ends, &ask->end, ask->ends_ms)) {
        if (!caller->tick)
            caller->tick = loop_after(caller->loop, TICK_MS, on_tick, caller);
        loop_post(caller->loop, &caller->again);
        return true;
    }
    caller_forget(ask);
    return refuse(no, REFUSAL_QUEUE_FULL, "", "out of memory");
}

bool caller_ask(struct caller *caller, struct caller_ask *ask, enum message_id id, const void *in, uint64_t tag,
                int64_t wait_ms, struct refusal *no)
{
    ask->request = (struct request){.tag = tag};
    ask->is_lasting = false;
    return begin(caller, ask, id, in, clock_ms() + wait_ms, no);
}

bool caller_watch(struct caller *caller, struct caller_ask *ask, enum message_id id, const void *in, uint64_t tag,
                  struct refusal *no)
{
    ask->request = (struct request){.tag = tag};
    ask->is_lasting = true;
    return begin(caller, ask, id, in, INT64_MAX, no);
}

/* The last of its answers ends it, before its owner hears: who may ask with it again. */
static void take_answer(struct caller *caller, const struct answer *answer)
{
    const uint64_t tag = answer_tag(answer);
    struct caller_ask *ask = table_find(&caller->asks, slice_of(&tag, sizeof(tag)));
    if (!ask)
        return;
    const bool goes_on = ask->is_lasting ? answer->id != MSG_refused : ask->is_fetch && answer->id == MSG_trajectory;
    if (!goes_on)
        caller_forget(ask);
    ask->answered(ask->arg, answer);
}

static bool read_answers(struct caller *caller)
{
    AUTO_ANSWER answer = {0};
    for (int i = 0; i < ANSWERS_A_TURN; i++) {
        if (!front_read(caller->client, &answer))
            return true;
        take_answer(caller, &answer);
        answer_finish(&answer);
    }
    return false;
}

static void send_due(struct caller *caller, int64_t now_ms)
{
    for (struct heap_node *node; (node = heap_peek(&caller->due)) && node->key <= now_ms;) {
        struct caller_ask *ask = container_of(node, struct caller_ask, due);
        if (!front_send_due(caller->client, &ask->request, now_ms))
            return; /* the broker is away */
        heap_put(&caller->due, &ask->due, ask->request.send_at_ms);
    }
}

static void end(struct caller_ask *ask)
{
    caller_forget(ask);
    ask->answered(ask->arg, NULL);
}

/* Who has no connection, or a key that is refused, waits for nothing. */
static void end_late(struct caller *caller, int64_t now_ms)
{
    const bool is_vain = !caller->client->front || caller_refused(caller);
    for (struct heap_node *node; (node = heap_peek(&caller->ends)) && (node->key <= now_ms || is_vain);)
        end(container_of(node, struct caller_ask, end));
}

void caller_work(struct caller *caller)
{
    if (caller->asks.count == 0 && !caller->client->front)
        return;
    const int64_t now_ms = clock_ms();
    if (front_open(caller->client) == 0) {
        send_due(caller, now_ms);
        if (!read_answers(caller))
            loop_post(caller->loop, &caller->again);
        watch_front(caller);
    }
    end_late(caller, now_ms);
}

/* ---- the caller -------------------------------------------------------------------------------------- */

static bool make_mark(const struct key *key, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    if (!digest)
        return false;
    digest_add_text(digest, "names of sluice-gateway");
    digest_add_text(digest, key->secret_text);
    return digest_end(&digest, ret);
}

struct caller *caller_open(const struct caller_plan *plan)
{
    struct caller *caller = calloc(1, sizeof(*caller));
    if (!caller)
        return NULL;
    caller->loop = plan->loop;
    caller->again = (struct loop_soon){.run = run_again};
    const bool is_marked = !plan->key || make_mark(plan->key, caller->mark);
    caller->client = is_marked ? sluice_connect(plan->url) : NULL;
    if (!caller->client) {
        free(caller);
        return NULL;
    }
    link_set_key(&caller->client->link, plan->key);
    if (plan->allow_plaintext)
        sluice_allow_plaintext(caller->client);
    return caller;
}

void caller_close(struct caller **handle)
{
    struct caller *caller = take_ptr(handle);
    if (!caller)
        return;
    for (struct heap_node *node; (node = heap_peek(&caller->ends));)
        caller_forget(container_of(node, struct caller_ask, end));
    loop_unwatch(caller->loop, &caller->front);
    loop_unwatch(caller->loop, &caller->monitor);
    loop_cancel(caller->loop, &caller->tick);
    loop_unpost(caller->loop, &caller->again);
    sluice_close(&caller->client);
    table_finish(&caller->asks);
    heap_finish(&caller->due);
    heap_finish(&caller->ends);
    free(caller);
}

const char *caller_public(const struct caller *caller) { return caller->client->link.key.public_text; }

const char *caller_mark(const struct caller *caller) { return caller->mark; }

const char *caller_refused(const struct caller *caller)
{
    return caller->client->link.error[0] ? caller->client->link.error : NULL;
}

const char *caller_trouble(struct caller *caller)
{
    if (!caller->client->front && caller->client->error[0])
        return caller->client->error;
    link_fail(caller->client);
    return caller->client->error;
}

void *caller_subscriber(struct caller *caller)
{
    return link_socket(caller->client, ZMQ_SUB, caller->client->feed_url);
}

uint64_t caller_made(const struct caller *caller) { return caller->client->link.made; }
