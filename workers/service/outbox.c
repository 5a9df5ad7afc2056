#include "workers/service/outbox.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/net/bundle.h"
#include "schemas/messages/message.h"

enum { RESEND_FIRST_MS = 2000, RESEND_LAST_MS = 32000 };

/* Bytes of a result, or of a bundle of them; owned by the outbox and, while it sends them, by ZeroMQ's thread. */
struct parcel {
    atomic_int owners;
    atomic_bool is_in_flight;
    struct buffer bytes;
};

struct outbox_entry {
    TAILQ_ENTRY(outbox_entry) links;
    struct outbox_list *list; /* that it is in */
    struct parcel *parcel;
    struct parcel *bundle; /* in which it was sent last, or NULL */
    uint64_t token;
    int64_t due_ms, wait_ms;
    size_t job_len;
    char job[];
};

/* ---- parcels ---------------------------------------------------------------------------- */

static struct parcel *parcel_make(struct buffer *bytes)
{
    struct parcel *parcel = malloc(sizeof(*parcel));
    if (!parcel)
        return NULL;
    atomic_init(&parcel->owners, 1);
    atomic_init(&parcel->is_in_flight, false);
    parcel->bytes = *bytes;
    *bytes = (struct buffer){0};
    return parcel;
}

/* NULL-safe. */
static void parcel_release(struct parcel *parcel)
{
    if (!parcel || atomic_fetch_sub(&parcel->owners, 1) > 1)
        return;
    buffer_finish(&parcel->bytes);
    free(parcel);
}

static void parcel_sent(void *data, void *hint)
{
    struct parcel *parcel = hint;
    (void)data;
    atomic_store(&parcel->is_in_flight, false);
    parcel_release(parcel);
}

static bool parcel_send(struct parcel *parcel, struct lane *lane)
{
    zmq_msg_t message;
    if (zmq_msg_init_data(&message, parcel->bytes.data, parcel->bytes.len, parcel_sent, parcel) < 0)
        return false;
    atomic_fetch_add(&parcel->owners, 1);
    atomic_store(&parcel->is_in_flight, true);
    return lane_send(lane, &message);
}

/* ---- entries ---------------------------------------------------------------------------- */

static struct slice job_of(const struct outbox_entry *entry) { return slice_of(entry->job, entry->job_len); }

void outbox_init(struct outbox *outbox, size_t bytes_max)
{
    *outbox = (struct outbox){.bytes_max = bytes_max};
    TAILQ_INIT(&outbox->unsent);
    TAILQ_INIT(&outbox->waiting);
}

/* To the end of a list, from the one it is in. */
static void entry_move(struct outbox_entry *entry, struct outbox_list *list)
{
    if (entry->list)
        TAILQ_REMOVE(entry->list, entry, links);
    entry->list = list;
    TAILQ_INSERT_TAIL(list, entry, links);
}

static void entry_remove(struct outbox *outbox, struct outbox_entry *entry)
{
    TAILQ_REMOVE(entry->list, entry, links);
    table_take(&outbox->by_job, job_of(entry));
    outbox->count--;
    outbox->bytes -= entry->parcel->bytes.len;
    parcel_release(entry->parcel);
    parcel_release(entry->bundle);
    free(entry);
}

void outbox_finish(struct outbox *outbox)
{
    struct outbox_list *lists[] = {&outbox->unsent, &outbox->waiting};
    for (int i = 0; i < 2; i++)
        while (!TAILQ_EMPTY(lists[i]))
            entry_remove(outbox, TAILQ_FIRST(lists[i]));
    table_finish(&outbox->by_job);
}

bool outbox_has(const struct outbox *outbox, struct slice job) { return table_find(&outbox->by_job, job) != NULL; }

bool outbox_is_full(const struct outbox *outbox)
{
    return outbox->bytes > outbox->bytes_max || outbox->count > OUTBOX_COUNT_MAX;
}

bool outbox_push(struct outbox *outbox, struct slice job, uint64_t token, struct buffer *bytes)
{
    AUTO_BUFFER taken = *bytes;
    *bytes = (struct buffer){0};
    AUTO_FREE struct outbox_entry *entry = calloc(1, sizeof(*entry) + job.len);
    if (!entry)
        return false;
    outbox_forget(outbox, job, UINT64_MAX);
    memcpy(entry->job, job.data, job.len);
    entry->job_len = job.len;
    if (!table_put(&outbox->by_job, job_of(entry), entry))
        return false;
    entry->parcel = parcel_make(&taken);
    if (!entry->parcel) {
        table_take(&outbox->by_job, job_of(entry));
        return false;
    }
    outbox->count++;
    outbox->bytes += entry->parcel->bytes.len;
    entry->token = token;
    entry->wait_ms = RESEND_FIRST_MS;
    entry_move(entry, &outbox->unsent);
    take_ptr(&entry);
    return true;
}

void outbox_forget(struct outbox *outbox, struct slice job, uint64_t token)
{
    struct outbox_entry *entry = table_find(&outbox->by_job, job);
    if (entry && entry->token <= token)
        entry_remove(outbox, entry);
}

/* ---- sending ---------------------------------------------------------------------------- */

/* One whose bytes are still on their way stays, and is looked at again when it is next due. */
static void entry_resend(struct outbox *outbox, struct outbox_entry *entry)
{
    if (atomic_load(&(entry->bundle ? entry->bundle : entry->parcel)->is_in_flight))
        return;
    entry_move(entry, &outbox->unsent);
}

void outbox_resend(struct outbox *outbox, struct slice job)
{
    struct outbox_entry *entry = table_find(&outbox->by_job, job);
    if (entry && entry->list == &outbox->waiting)
        entry_resend(outbox, entry);
}

void outbox_resend_due(struct outbox *outbox, int64_t now_ms)
{
    struct outbox_entry *next;
    for (struct outbox_entry *entry = TAILQ_FIRST(&outbox->waiting); entry; entry = next) {
        next = TAILQ_NEXT(entry, links);
        if (entry->due_ms > now_ms)
            continue;
        if (entry->wait_ms < RESEND_LAST_MS)
            entry->wait_ms *= 2;
        entry_resend(outbox, entry);
    }
}

void outbox_resend_all(struct outbox *outbox)
{
    struct outbox_entry *next;
    for (struct outbox_entry *entry = TAILQ_FIRST(&outbox->waiting); entry; entry = next) {
        next = TAILQ_NEXT(entry, links);
        entry->due_ms = 0;
        entry->wait_ms = RESEND_FIRST_MS;
        entry_resend(outbox, entry);
    }
}

/* `bundle`: what it left with, or NULL. */
static void entry_sent(struct outbox *outbox, struct outbox_entry *entry, struct parcel *bundle, int64_t now_ms)
{
    parcel_release(entry->bundle);
    entry->bundle = bundle;
    if (bundle)
        atomic_fetch_add(&bundle->owners, 1);
    entry_move(entry, &outbox->waiting);
    entry->due_ms = now_ms + entry->wait_ms;
}

/* As many of the first as a bundle takes, if they are several. */
static size_t bundle_first(const struct outbox *outbox, struct buffer *bundle)
{
    const struct outbox_entry *entry;
    size_t count = 0;
    TAILQ_FOREACH(entry, &outbox->unsent, links)
    {
        const struct slice bytes = buffer_peek(&entry->parcel->bytes);
        if (bytes.len > BUNDLED_MAX || bundle->len + bytes.len > BUNDLE_BYTES_MAX || !bundle_add(bundle, bytes))
            break;
        count++;
    }
    return count > 1 ? count : 0;
}

/* Several of the first as one, or the first alone. False when the lane takes no more. */
static bool send_first(struct outbox *outbox, struct lane *lane, int64_t now_ms)
{
    AUTO_BUFFER bytes = {0};
    struct outbox_entry *entry = TAILQ_FIRST(&outbox->unsent);
    const bool is_alone = !lane->bundles || !TAILQ_NEXT(entry, links);
    if (!is_alone && !lane_can_send(lane))
        return false;
    size_t count = is_alone ? 0 : bundle_first(outbox, &bytes);
    struct parcel *bundle = count ? parcel_make(&bytes) : NULL;
    const bool is_sent = parcel_send(bundle ? bundle : entry->parcel, lane);
    for (count = bundle ? count : 1; is_sent && count > 0; count--)
        entry_sent(outbox, TAILQ_FIRST(&outbox->unsent), bundle, now_ms);
    parcel_release(bundle);
    return is_sent;
}

void outbox_flush(struct outbox *outbox, struct lane *lane, int64_t now_ms)
{
    while (!TAILQ_EMPTY(&outbox->unsent) && send_first(outbox, lane, now_ms))
        ;
}

bool outbox_list_jobs(const struct outbox *outbox, struct buffer *packed)
{
    const struct outbox_list *lists[] = {&outbox->unsent, &outbox->waiting};
    for (int i = 0; i < 2; i++) {
        struct outbox_entry *entry;
        TAILQ_FOREACH(entry, lists[i], links)
        if (!jobs_append(packed, job_of(entry), entry->token))
            return false;
    }
    return true;
}
