#include "client/trace/otlp_exporter.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/otlp.h"
#include "client/trace/otlp_post.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { RETRY_FIRST_MS = 1000, WAIT_MS = 3600000 };

struct item {
    char *json;
    size_t len;
};

struct otlp_exporter {
    struct otlp_post *post; /* the thread's */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_bool ends;
    /* Under the mutex. A ring of spans; those of a batch that is under way are still in it. */
    struct item *queue;
    size_t first, count, bytes;
    struct otlp_counts counts;
};

static struct item *item_at(struct otlp_exporter *exporter, size_t at)
{
    return &exporter->queue[(exporter->first + at) % OTLP_QUEUE_SPANS];
}

/* Under the mutex: the first `count` are done with, one way or the other. */
static void take_off(struct otlp_exporter *exporter, size_t count, uint64_t *counter)
{
    for (size_t i = 0; i < count; i++) {
        exporter->bytes -= item_at(exporter, i)->len;
        free(take_ptr(&item_at(exporter, i)->json));
    }
    exporter->first = (exporter->first + count) % OTLP_QUEUE_SPANS;
    exporter->count -= count;
    *counter += count;
    pthread_cond_broadcast(&exporter->changed);
}

/* Under the mutex: false once the time is over, or it ends. */
static bool wait_until(struct otlp_exporter *exporter, int64_t until_ms)
{
    const struct timespec due = {until_ms / 1000, until_ms % 1000 * 1000000};
    if (clock_ms() >= until_ms || atomic_load(&exporter->ends))
        return false;
    pthread_cond_timedwait(&exporter->changed, &exporter->mutex, &due);
    return !atomic_load(&exporter->ends);
}

/* ---- the thread -------------------------------------------------------------------------------------- */

/* Under the mutex: a request of at most a batch. */
static size_t make_batch(struct otlp_exporter *exporter, struct buffer *body)
{
    size_t count = exporter->count < OTLP_BATCH_SPANS ? exporter->count : OTLP_BATCH_SPANS;
    bool is_whole = otlp_append_head(body);
    for (size_t i = 0; i < count; i++) {
        buffer_append_str(body, i ? "," : "");
        buffer_append(body, item_at(exporter, i)->json, item_at(exporter, i)->len);
    }
    is_whole &= otlp_append_tail(body) && !body->failed;
    if (!is_whole)
        buffer_clear(body);
    return count;
}

/* Under the mutex, which is free while it waits. */
static void rest(struct otlp_exporter *exporter, int64_t ms)
{
    const int64_t until_ms = clock_ms() + ms;
    while (wait_until(exporter, until_ms))
        ;
}

/* Under the mutex, which is free during requests. */
static bool send_batch(struct otlp_exporter *exporter, struct slice body)
{
    int64_t own_ms = RETRY_FIRST_MS;
    for (int tries = 1;; tries++) {
        struct fail fail = {0};
        int64_t retry_ms;
        exporter->counts.requests++;
        pthread_mutex_unlock(&exporter->mutex);
        const enum otlp_result result = otlp_post_send(exporter->post, body, &retry_ms, &fail);
        pthread_mutex_lock(&exporter->mutex);
        if (result == OTLP_SENT)
            return true;
        snprintf(exporter->counts.why, sizeof(exporter->counts.why), "%s", fail.text);
        if (result == OTLP_FAILED || tries == OTLP_TRIES || atomic_load(&exporter->ends))
            return false;
        exporter->counts.tried_again++;
        rest(exporter, retry_ms >= 0 ? retry_ms : own_ms);
        own_ms = 2 * own_ms < OTLP_RETRY_LAST_MS ? 2 * own_ms : OTLP_RETRY_LAST_MS;
    }
}

static void *run(void *arg)
{
    struct otlp_exporter *exporter = arg;
    pthread_mutex_lock(&exporter->mutex);
    while (!atomic_load(&exporter->ends)) {
        AUTO_BUFFER body = {0};
        if (!exporter->count) {
            wait_until(exporter, clock_ms() + WAIT_MS);
            continue;
        }
        const size_t count = make_batch(exporter, &body);
        const bool is_sent = body.len > 0 && send_batch(exporter, buffer_peek(&body));
        take_off(exporter, count, is_sent ? &exporter->counts.sent : &exporter->counts.dropped_failed);
    }
    pthread_mutex_unlock(&exporter->mutex);
    return NULL;
}

/* ---- from outside ------------------------------------------------------------------------------------- */

static void free_exporter(struct otlp_exporter *exporter)
{
    otlp_post_destroy(&exporter->post);
    for (size_t i = 0; exporter->queue && i < exporter->count; i++)
        free(item_at(exporter, i)->json);
    free(exporter->queue);
    pthread_cond_destroy(&exporter->changed);
    pthread_mutex_destroy(&exporter->mutex);
    free(exporter);
}

struct otlp_exporter *otlp_exporter_create(const char *url, struct fail *fail)
{
    struct otlp_exporter *exporter = calloc(1, sizeof(*exporter));
    pthread_condattr_t monotonic;
    if (!exporter) {
        fail_set(fail, -ENOMEM, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&exporter->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&exporter->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    exporter->post = otlp_post_create(url, &exporter->ends, fail);
    exporter->queue = exporter->post ? calloc(OTLP_QUEUE_SPANS, sizeof(*exporter->queue)) : NULL;
    if (exporter->queue && pthread_create(&exporter->thread, NULL, run, exporter) == 0)
        return exporter;
    if (exporter->post)
        fail_set(fail, -ENOMEM, "out of memory, or threads");
    free_exporter(exporter);
    return NULL;
}

/* Each span's JSON; false when out of memory: then there are none. */
static bool make_items(const struct span_list *spans, struct item *items, size_t *ret_bytes)
{
    *ret_bytes = 0;
    for (size_t i = 0; i < spans->count; i++) {
        AUTO_BUFFER json = {0};
        if (otlp_append_span(spans, i, &json) && !json.failed) {
            items[i] = (struct item){.len = json.len};
            items[i].json = (char *)take_ptr(&json.data);
            *ret_bytes += items[i].len;
            continue;
        }
        while (i-- > 0)
            free(items[i].json);
        return false;
    }
    return true;
}

/* Under the mutex. */
static bool queue_items(struct otlp_exporter *exporter, const struct item *items, size_t count, size_t bytes)
{
    if (exporter->count + count > OTLP_QUEUE_SPANS || exporter->bytes + bytes > OTLP_QUEUE_BYTES)
        return false;
    for (size_t i = 0; i < count; i++)
        *item_at(exporter, exporter->count + i) = items[i];
    exporter->count += count;
    exporter->bytes += bytes;
    pthread_cond_broadcast(&exporter->changed);
    return true;
}

/* Before anything is encoded: what is certain to be dropped costs no more than its counting. */
static bool has_room(struct otlp_exporter *exporter, size_t count)
{
    pthread_mutex_lock(&exporter->mutex);
    const bool has = exporter->count + count <= OTLP_QUEUE_SPANS && exporter->bytes < OTLP_QUEUE_BYTES;
    pthread_mutex_unlock(&exporter->mutex);
    return has;
}

static bool take_spans(struct otlp_exporter *exporter, const struct span_list *spans, const char **ret_why)
{
    size_t bytes = 0;
    *ret_why = "the queue is full";
    if (!has_room(exporter, spans->count))
        return false;
    AUTO_FREE struct item *items = calloc(spans->count + 1, sizeof(*items));
    if (!items || !make_items(spans, items, &bytes)) {
        *ret_why = "out of memory";
        return false;
    }
    pthread_mutex_lock(&exporter->mutex);
    const bool is_queued = queue_items(exporter, items, spans->count, bytes);
    pthread_mutex_unlock(&exporter->mutex);
    for (size_t i = 0; !is_queued && i < spans->count; i++)
        free(items[i].json);
    return is_queued;
}

bool otlp_exporter_add(struct otlp_exporter *exporter, const struct sluice_trajectory *trajectory)
{
    AUTO_SPANS spans = {0};
    const char *why = "out of memory";
    const bool is_taken = span_list_make(&spans, trajectory) && take_spans(exporter, &spans, &why);
    pthread_mutex_lock(&exporter->mutex);
    exporter->counts.taken += spans.count;
    exporter->counts.dropped_full += is_taken ? 0 : spans.count;
    if (!is_taken)
        snprintf(exporter->counts.why, sizeof(exporter->counts.why), "%s", why);
    pthread_mutex_unlock(&exporter->mutex);
    return is_taken;
}

bool otlp_exporter_await(struct otlp_exporter *exporter, size_t left, int64_t timeout_ms)
{
    const int64_t until_ms = clock_ms() + timeout_ms;
    pthread_mutex_lock(&exporter->mutex);
    while (exporter->count > left && wait_until(exporter, until_ms))
        ;
    const bool is_there = exporter->count <= left;
    pthread_mutex_unlock(&exporter->mutex);
    return is_there;
}

void otlp_exporter_counts(struct otlp_exporter *exporter, struct otlp_counts *ret)
{
    pthread_mutex_lock(&exporter->mutex);
    *ret = exporter->counts;
    pthread_mutex_unlock(&exporter->mutex);
}

void otlp_exporter_destroy(struct otlp_exporter **exporter)
{
    if (!*exporter)
        return;
    pthread_mutex_lock(&(*exporter)->mutex);
    atomic_store(&(*exporter)->ends, true);
    pthread_cond_broadcast(&(*exporter)->changed);
    pthread_mutex_unlock(&(*exporter)->mutex);
    pthread_join((*exporter)->thread, NULL);
    free_exporter(*exporter);
    *exporter = NULL;
}
