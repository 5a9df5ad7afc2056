/*
 * Messages that promise something: to a client, that its submit is kept or how a rollout ended, to a worker, that it
 * may forget a result. They leave in order, each when all that was committed before it was made is durable; that is at
 * once where nothing waits for the disk. A client's promise has a sync begin at once, a worker's waits a little for one
 * to share: nobody waits for it. What a worker can at worst do in vain, a job above all, is no promise and does
 * not come here.
 */
#include "broker/io/inner.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum {
    PROMISES_MAX = 1 << 16,        /* messages, and ... */
    PROMISES_BYTES_MAX = 64 << 20, /* ... bytes: beyond either the broker waits for its disk */
    KEPT_A_CYCLE = 512,            /* so that a socket's thread has time to send some */
    ACK_PATIENCE_MS = 5            /* so long a worker's promise waits for a sync to share */
};

struct promise {
    STAILQ_ENTRY(promise) link;
    uint64_t commit; /* that must be durable */
    enum promise_to to;
    zmq_msg_t body;
    size_t size;
    uint32_t name_len;
    uint8_t name[];
};

struct promises {
    STAILQ_HEAD(, promise) waiting;
    size_t count, bytes;
    uint64_t durable; /* the last commit that is, as far as was looked */
    int64_t sync_ms;  /* when a sync is to begin; 0: nobody waits for one that has not been asked for */
};

struct promises *promises_create(void)
{
    struct promises *promises = calloc(1, sizeof(*promises));
    if (promises)
        STAILQ_INIT(&promises->waiting);
    return promises;
}

static void drop_first(struct promises *promises)
{
    struct promise *promise = STAILQ_FIRST(&promises->waiting);
    STAILQ_REMOVE_HEAD(&promises->waiting, link);
    promises->count--;
    promises->bytes -= promise->size;
    free(promise);
}

void promises_destroy(struct promises **destroying)
{
    struct promises *promises = take_ptr(destroying);
    struct promise *promise;
    while (promises && (promise = STAILQ_FIRST(&promises->waiting))) {
        zmq_msg_close(&promise->body);
        drop_first(promises);
    }
    free(promises);
}

static int deliver(struct io *io, enum promise_to to, struct slice name, zmq_msg_t *body, struct fail *fail)
{
    switch (to) {
    case PROMISE_CLIENT: io_send(io, name, body); return 0;
    case PROMISE_EVENTS: io_send_event(io, name, body); return 0;
    case PROMISE_FEED: return io_publish(io, name, body, fail);
    case PROMISE_LANE: io_send_lane(io, name, slice_of(NULL, 0), body); return 0;
    }
    return 0;
}

int promise_send(struct io *io, enum promise_to to, struct slice name, zmq_msg_t *body, struct fail *fail)
{
    struct promises *promises = io->promises;
    if (!promises->count && io->committed.number <= promises->durable)
        return deliver(io, to, name, body, fail);
    struct promise *promise = malloc(sizeof(*promise) + name.len);
    if (!promise) {
        zmq_msg_close(body);
        return fail_set(fail, -ENOMEM, "out of memory");
    }
    promise->commit = io->committed.number;
    promise->to = to;
    promise->name_len = (uint32_t)name.len;
    if (name.len)
        memcpy(promise->name, name.data, name.len);
    zmq_msg_init(&promise->body);
    zmq_msg_move(&promise->body, body);
    promise->size = zmq_msg_size(&promise->body);
    promises->bytes += promise->size;
    promises->count++;
    STAILQ_INSERT_TAIL(&promises->waiting, promise, link);
    const int64_t sync_ms = clock_ms() + (to == PROMISE_LANE ? ACK_PATIENCE_MS : 0);
    if (!promises->sync_ms || sync_ms < promises->sync_ms)
        promises->sync_ms = sync_ms;
    return 0;
}

bool promises_can_be_kept(const struct io *io)
{
    const struct promise *first = STAILQ_FIRST(&io->promises->waiting);
    return first && first->commit <= io->promises->durable;
}

int promises_keep(struct io *io, struct fail *fail)
{
    struct promises *promises = io->promises;
    int code = ledger_durable(io->ledger, &promises->durable, fail);
    for (unsigned kept = 0; code == 0 && kept < KEPT_A_CYCLE && promises_can_be_kept(io); kept++) {
        struct promise *promise = STAILQ_FIRST(&promises->waiting);
        code = deliver(io, promise->to, slice_of(promise->name, promise->name_len), &promise->body, fail);
        drop_first(promises);
    }
    return code;
}

int promises_keep_all(struct io *io, struct fail *fail)
{
    int code = ledger_await_durable(io->ledger, &io->committed, fail);
    while (code == 0 && io->promises->count)
        code = promises_keep(io, fail);
    return code;
}

int64_t promises_due_ms(const struct io *io) { return io->promises->sync_ms ? io->promises->sync_ms : INT64_MAX; }

void promises_sync(struct io *io, int64_t now_ms)
{
    struct promises *promises = io->promises;
    if (!promises->sync_ms || promises->sync_ms > now_ms)
        return;
    ledger_ask_durable(io->ledger, &io->committed);
    promises->sync_ms = 0;
}

int promises_bound(struct io *io, struct fail *fail)
{
    const struct promises *promises = io->promises;
    const bool is_full = promises->count > PROMISES_MAX || promises->bytes > PROMISES_BYTES_MAX;
    return is_full ? promises_keep_all(io, fail) : 0;
}
