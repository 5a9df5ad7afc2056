#include "broker/layer_gc/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/layer_gc/store_files.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum {
    CLAIM_WAIT_MS = 2000,
    STOP_WAIT_MS = 2000,
    LOOKS_PER_GRACE = 8,
    LOOK_MIN_MS = 200,
    LOOK_MAX_MS = 600000,
    AWAY_MS = 5000
};

struct store {
    char *dir, *data_dir, *ledger_path;
    pthread_t thread;
    int64_t grace_ms;
    int64_t since_ms; /* the thread's: since when it has not been away */
    atomic_bool stop;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    unsigned holders; /* the owner and the thread: who goes last frees */
    bool has_ended;
    struct store_view view;
};

/* ---- waiting -------------------------------------------------------------------------------- */

static struct timespec after_ms(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t nanoseconds = at.tv_nsec + ms % 1000 * 1000000;
    return (struct timespec){at.tv_sec + ms / 1000 + nanoseconds / 1000000000, nanoseconds % 1000000000};
}

/* Waits so long at most until `holds`; the lock is held. */
static bool await(struct store *store, bool (*holds)(const struct store *store), int64_t ms)
{
    struct timespec end = after_ms(ms);
    while (!holds(store) && pthread_cond_timedwait(&store->changed, &store->lock, &end) != ETIMEDOUT)
        ;
    return holds(store);
}

static bool is_stopping(const struct store *store) { return atomic_load(&store->stop); }
static bool has_answered(const struct store *store) { return store->view.state != STORE_SILENT; }
static bool has_ended(const struct store *store) { return store->has_ended; }

static void let_go(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    bool is_last = --store->holders == 0;
    pthread_mutex_unlock(&store->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    free(store->dir);
    free(store->data_dir);
    free(store->ledger_path);
    free(store);
}

/* ---- the thread ------------------------------------------------------------------------------- */

static int read_needs(void *context, struct store_needs *ret, struct fail *fail)
{
    const struct store *store = context;
    return store_needs_read(store->ledger_path, &store->stop, ret, fail);
}

/* The wall clock's second before which a layer is old; none while the broker is young. */
static int64_t old_before_s(const struct store *store)
{
    if (clock_wall_ms() - store->since_ms < store->grace_ms)
        return INT64_MIN;
    return (clock_wall_ms() - store->grace_ms) / 1000;
}

static void look(struct store *store)
{
    struct fail fail = {0};
    struct store_sweep sweep = {.store = store->dir,
                                .before_s = old_before_s(store),
                                .read_needs = read_needs,
                                .context = store,
                                .stop = &store->stop};
    int code = store_files_sweep(&sweep, &fail);
    pthread_mutex_lock(&store->lock);
    struct store_view *view = &store->view;
    if (!is_stopping(store)) {
        view->layers = sweep.layers - sweep.freed_layers;
        view->bytes = sweep.bytes - sweep.freed_bytes;
        view->looks++;
        view->error = code ? fail : (struct fail){0};
    }
    view->freed_layers += sweep.freed_layers;
    view->freed_bytes += sweep.freed_bytes;
    pthread_mutex_unlock(&store->lock);
}

/* Until the store says that it is ours, or another's. */
static void claim(struct store *store)
{
    struct fail fail = {0};
    int code = store_files_claim(store->dir, store->data_dir, &fail);
    pthread_mutex_lock(&store->lock);
    store->view.error = code ? fail : (struct fail){0};
    if (code == 0 || code == -EBUSY)
        store->view.state = code ? STORE_REFUSED : STORE_TENDED;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

/* Until it is to end; false then. Who was away for long meanwhile has heard of nothing: anew. */
static bool rest(struct store *store, int64_t pause_ms)
{
    int64_t before_ms = clock_wall_ms();
    pthread_mutex_lock(&store->lock);
    bool goes_on = !await(store, is_stopping, pause_ms);
    pthread_mutex_unlock(&store->lock);
    int64_t now_ms = clock_wall_ms();
    if (now_ms < before_ms || now_ms - before_ms > pause_ms + AWAY_MS)
        store->since_ms = now_ms;
    return goes_on;
}

static void *tend(void *arg)
{
    struct store *store = arg;
    int64_t pause_ms = store->grace_ms / LOOKS_PER_GRACE;
    pause_ms = pause_ms < LOOK_MIN_MS ? LOOK_MIN_MS : pause_ms > LOOK_MAX_MS ? LOOK_MAX_MS : pause_ms;
    do {
        if (store->view.state == STORE_SILENT)
            claim(store);
        if (store->view.state == STORE_TENDED)
            look(store);
    } while (store->view.state != STORE_REFUSED && rest(store, pause_ms));
    pthread_mutex_lock(&store->lock);
    store->has_ended = true;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
    let_go(store);
    return NULL;
}

/* ---- the owner -------------------------------------------------------------------------------- */

static struct store *create(const struct store_options *options)
{
    pthread_condattr_t attributes;
    struct store *store = calloc(1, sizeof(*store));
    if (!store)
        return NULL;
    pthread_mutex_init(&store->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&store->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    store->holders = 1;
    store->grace_ms = options->grace_ms;
    store->since_ms = clock_wall_ms();
    store->dir = strdup(options->dir);
    store->data_dir = strdup(options->data_dir);
    if (asprintf(&store->ledger_path, "%s/ledger.db", options->data_dir) < 0)
        store->ledger_path = NULL;
    if (store->dir && store->data_dir && store->ledger_path)
        return store;
    let_go(store);
    return NULL;
}

int store_start(struct store **ret, const struct store_options *options, struct fail *fail)
{
    struct store *store = create(options);
    if (!store)
        return fail_set(fail, -ENOMEM, "out of memory");
    store->holders = 2;
    int code = -pthread_create(&store->thread, NULL, tend, store);
    if (code) {
        store->holders = 1;
        let_go(store);
        return fail_set(fail, code, "cannot start a thread: %s", strerror(-code));
    }
    struct store_view view;
    pthread_mutex_lock(&store->lock);
    await(store, has_answered, CLAIM_WAIT_MS);
    view = store->view;
    pthread_mutex_unlock(&store->lock);
    if (view.state == STORE_REFUSED) {
        store_stop(&store);
        return fail_set(fail, -EBUSY, "%s", view.error.text);
    }
    *ret = store;
    return 0;
}

void store_see(struct store *store, struct store_view *ret)
{
    pthread_mutex_lock(&store->lock);
    *ret = store->view;
    pthread_mutex_unlock(&store->lock);
}

void store_stop(struct store **stopping)
{
    struct store *store = take_ptr(stopping);
    if (!store)
        return;
    pthread_mutex_lock(&store->lock);
    atomic_store(&store->stop, true);
    pthread_cond_broadcast(&store->changed);
    bool is_there = await(store, has_ended, STOP_WAIT_MS);
    pthread_mutex_unlock(&store->lock);
    if (is_there)
        pthread_join(store->thread, NULL);
    else
        pthread_detach(store->thread);
    let_go(store);
}
