#include "broker/layer_gc/layer_gc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/layer_gc/layer_store.h"
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

struct layer_gc {
    char *dir, *data_dir, *ledger_path;
    pthread_t thread;
    int64_t grace_ms;
    int64_t since_ms; /* the thread's: since when it has not been away */
    atomic_bool stop;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    unsigned holders; /* the owner and the thread: who goes last frees */
    bool has_ended;
    struct layer_gc_view view;
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
static bool await(struct layer_gc *gc, bool (*holds)(const struct layer_gc *gc), int64_t ms)
{
    struct timespec end = after_ms(ms);
    while (!holds(gc) && pthread_cond_timedwait(&gc->changed, &gc->lock, &end) != ETIMEDOUT)
        ;
    return holds(gc);
}

static bool is_stopping(const struct layer_gc *gc) { return atomic_load(&gc->stop); }
static bool has_answered(const struct layer_gc *gc) { return gc->view.state != LAYER_GC_SILENT; }
static bool has_ended(const struct layer_gc *gc) { return gc->has_ended; }

static void let_go(struct layer_gc *gc)
{
    pthread_mutex_lock(&gc->lock);
    bool is_last = --gc->holders == 0;
    pthread_mutex_unlock(&gc->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&gc->changed);
    pthread_mutex_destroy(&gc->lock);
    free(gc->dir);
    free(gc->data_dir);
    free(gc->ledger_path);
    free(gc);
}

/* ---- the thread ------------------------------------------------------------------------------- */

static int read_needed(void *context, struct needed_layers *ret, struct fail *fail)
{
    const struct layer_gc *gc = context;
    return needed_layers_read(gc->ledger_path, &gc->stop, ret, fail);
}

/* The wall clock's second before which a layer is old; none while the broker is young. */
static int64_t old_before_s(const struct layer_gc *gc)
{
    if (clock_wall_ms() - gc->since_ms < gc->grace_ms)
        return INT64_MIN;
    return (clock_wall_ms() - gc->grace_ms) / 1000;
}

static void look(struct layer_gc *gc)
{
    struct fail fail = {0};
    struct layer_sweep sweep = {
        .store = gc->dir, .before_s = old_before_s(gc), .read_needed = read_needed, .context = gc, .stop = &gc->stop};
    int code = layer_store_sweep(&sweep, &fail);
    pthread_mutex_lock(&gc->lock);
    struct layer_gc_view *view = &gc->view;
    if (!is_stopping(gc)) {
        view->layers = sweep.layers - sweep.freed_layers;
        view->bytes = sweep.bytes - sweep.freed_bytes;
        view->looks++;
        view->error = code ? fail : (struct fail){0};
    }
    view->freed_layers += sweep.freed_layers;
    view->freed_bytes += sweep.freed_bytes;
    pthread_mutex_unlock(&gc->lock);
}

/* Until the store says that it is ours, or another's. */
static void claim(struct layer_gc *gc)
{
    struct fail fail = {0};
    int code = layer_store_claim(gc->dir, gc->data_dir, &fail);
    pthread_mutex_lock(&gc->lock);
    gc->view.error = code ? fail : (struct fail){0};
    if (code == 0 || code == -EBUSY)
        gc->view.state = code ? LAYER_GC_REFUSED : LAYER_GC_TENDED;
    pthread_cond_broadcast(&gc->changed);
    pthread_mutex_unlock(&gc->lock);
}

/* Until it is to end; false then. Who was away for long meanwhile has heard of nothing: anew. */
static bool rest(struct layer_gc *gc, int64_t pause_ms)
{
    int64_t before_ms = clock_wall_ms();
    pthread_mutex_lock(&gc->lock);
    bool goes_on = !await(gc, is_stopping, pause_ms);
    pthread_mutex_unlock(&gc->lock);
    int64_t now_ms = clock_wall_ms();
    if (now_ms < before_ms || now_ms - before_ms > pause_ms + AWAY_MS)
        gc->since_ms = now_ms;
    return goes_on;
}

static void *tend(void *arg)
{
    struct layer_gc *gc = arg;
    int64_t pause_ms = gc->grace_ms / LOOKS_PER_GRACE;
    pause_ms = pause_ms < LOOK_MIN_MS ? LOOK_MIN_MS : pause_ms > LOOK_MAX_MS ? LOOK_MAX_MS : pause_ms;
    do {
        if (gc->view.state == LAYER_GC_SILENT)
            claim(gc);
        if (gc->view.state == LAYER_GC_TENDED)
            look(gc);
    } while (gc->view.state != LAYER_GC_REFUSED && rest(gc, pause_ms));
    pthread_mutex_lock(&gc->lock);
    gc->has_ended = true;
    pthread_cond_broadcast(&gc->changed);
    pthread_mutex_unlock(&gc->lock);
    let_go(gc);
    return NULL;
}

/* ---- the owner -------------------------------------------------------------------------------- */

static struct layer_gc *create(const struct layer_gc_options *options)
{
    pthread_condattr_t attributes;
    struct layer_gc *gc = calloc(1, sizeof(*gc));
    if (!gc)
        return NULL;
    pthread_mutex_init(&gc->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gc->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    gc->holders = 1;
    gc->grace_ms = options->grace_ms;
    gc->since_ms = clock_wall_ms();
    gc->dir = strdup(options->dir);
    gc->data_dir = strdup(options->data_dir);
    if (asprintf(&gc->ledger_path, "%s/ledger.db", options->data_dir) < 0)
        gc->ledger_path = NULL;
    if (gc->dir && gc->data_dir && gc->ledger_path)
        return gc;
    let_go(gc);
    return NULL;
}

int layer_gc_start(struct layer_gc **ret, const struct layer_gc_options *options, struct fail *fail)
{
    struct layer_gc *gc = create(options);
    if (!gc)
        return fail_set(fail, -ENOMEM, "out of memory");
    gc->holders = 2;
    int code = -pthread_create(&gc->thread, NULL, tend, gc);
    if (code) {
        gc->holders = 1;
        let_go(gc);
        return fail_set(fail, code, "cannot start a thread: %s", strerror(-code));
    }
    struct layer_gc_view view;
    pthread_mutex_lock(&gc->lock);
    await(gc, has_answered, CLAIM_WAIT_MS);
    view = gc->view;
    pthread_mutex_unlock(&gc->lock);
    if (view.state == LAYER_GC_REFUSED) {
        layer_gc_stop(&gc);
        return fail_set(fail, -EBUSY, "%s", view.error.text);
    }
    *ret = gc;
    return 0;
}

void layer_gc_see(struct layer_gc *gc, struct layer_gc_view *ret)
{
    pthread_mutex_lock(&gc->lock);
    *ret = gc->view;
    pthread_mutex_unlock(&gc->lock);
}

void layer_gc_stop(struct layer_gc **stopping)
{
    struct layer_gc *gc = take_ptr(stopping);
    if (!gc)
        return;
    pthread_mutex_lock(&gc->lock);
    atomic_store(&gc->stop, true);
    pthread_cond_broadcast(&gc->changed);
    bool is_there = await(gc, has_ended, STOP_WAIT_MS);
    pthread_mutex_unlock(&gc->lock);
    if (is_there)
        pthread_join(gc->thread, NULL);
    else
        pthread_detach(gc->thread);
    let_go(gc);
}
