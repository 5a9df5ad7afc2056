#include "workers/layers/unpack/thread_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

enum { HELPERS = 2, BATCH_FILES = 64, BATCH_BYTES = 512 * 1024, QUEUE_MAX = 4 };

struct spec { /* of a file; places in its batch's bytes */
    size_t leaf, content, len;
    mode_t mode;
    struct timespec times[2];
};

struct batch {
    char *dir;
    int parent;
    size_t count;
    struct spec specs[BATCH_FILES];
    struct buffer bytes;
    struct batch *next;
};

struct helper {
    struct thread_pool *pool;
    pthread_t thread;
    struct batch *first, **end;
    size_t queued; /* and in hand */
};

struct thread_pool {
    mode_t umask;
    const atomic_bool *stop;
    struct batch *open;                    /* being filled */
    struct helper helpers[HELPERS], *last; /* who got the last batch */
    char *last_dir;
    size_t started;
    pthread_mutex_t lock; /* of the queues and of what follows */
    pthread_cond_t changed;
    bool ended;
    struct fail failed; /* the first */
};

/* ---- making ------------------------------------------------------------------------------- */

static int refuse(const struct pool_file *file, const char *what, struct fail *fail)
{
    if (errno == EEXIST)
        return fail_set(fail, -EBADMSG, "the layer holds %.200s%.100s: it comes twice", file->dir, file->leaf);
    return fail_set(fail, -errno, "cannot %s %.200s%.100s: %s", what, file->dir, file->leaf, strerror(errno));
}

/* One file, now. */
static int make_file(const struct pool_file *file, mode_t umask, struct fail *fail)
{
    AUTO_CLOSE int fd = openat(file->parent, file->leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                               file->mode);
    if (fd < 0)
        return refuse(file, "make", fail);
    if (file->content.len && dirtree_write_at(fd, file->content.data, file->content.len, 0) < 0)
        return refuse(file, "write", fail);
    if (((file->mode & umask) && fchmod(fd, file->mode) < 0) || futimens(fd, file->times) < 0)
        return refuse(file, "set the mode of", fail);
    return 0;
}

static int make_batch(const struct thread_pool *pool, const struct batch *batch, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; i < batch->count && code == 0; i++) {
        const struct spec *spec = &batch->specs[i];
        struct pool_file file = {.dir = batch->dir,
                                 .leaf = (const char *)batch->bytes.data + spec->leaf,
                                 .parent = batch->parent,
                                 .content = {batch->bytes.data + spec->content, spec->len},
                                 .mode = spec->mode,
                                 .times = {spec->times[0], spec->times[1]}};
        code = atomic_load(pool->stop) ? fail_set(fail, -ECANCELED, "stopped") : make_file(&file, pool->umask, fail);
    }
    return code;
}

static void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    if (batch->parent >= 0)
        close(batch->parent);
    free(batch->dir);
    buffer_finish(&batch->bytes);
    free(batch);
}

/* ---- the helpers -------------------------------------------------------------------------- */

/* The next batch of its queue, waited for; NULL at the end. The lock is held. */
static struct batch *take_batch(struct helper *helper)
{
    while (!helper->first && !helper->pool->ended)
        pthread_cond_wait(&helper->pool->changed, &helper->pool->lock);
    struct batch *batch = helper->first;
    if (batch && !(helper->first = batch->next))
        helper->end = &helper->first;
    return batch;
}

static void *help(void *arg)
{
    struct helper *helper = arg;
    struct thread_pool *pool = helper->pool;
    struct batch *batch;
    pthread_mutex_lock(&pool->lock);
    while ((batch = take_batch(helper))) {
        bool is_wanted = !pool->ended && pool->failed.code == 0;
        struct fail fail = {0};
        pthread_mutex_unlock(&pool->lock);
        int code = is_wanted ? make_batch(pool, batch, &fail) : 0;
        batch_free(batch);
        pthread_mutex_lock(&pool->lock);
        helper->queued--;
        if (code && pool->failed.code == 0)
            pool->failed = fail;
        pthread_cond_broadcast(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* As many as can be had. */
static void start(struct thread_pool *pool)
{
    for (; pool->started < HELPERS; pool->started++) {
        struct helper *helper = &pool->helpers[pool->started];
        helper->pool = pool;
        helper->end = &helper->first;
        if (pthread_create(&helper->thread, NULL, help, helper) != 0)
            return;
    }
}

static bool is_idle(const struct thread_pool *pool)
{
    size_t queued = 0;
    for (size_t i = 0; i < pool->started; i++)
        queued += pool->helpers[i].queued;
    return queued == 0;
}

/* ---- handing over ------------------------------------------------------------------------- */

static int answer(struct thread_pool *pool, struct fail *fail)
{
    return pool->failed.code ? fail_set(fail, pool->failed.code, "%s", pool->failed.text) : 0;
}

/* Two in one directory would wait for each other: it stays with who has it. */
static struct helper *choose(struct thread_pool *pool, const struct batch *batch)
{
    struct helper *chosen = &pool->helpers[0];
    if (pool->last && strcmp(pool->last_dir, batch->dir) == 0)
        return pool->last;
    for (size_t i = 1; i < pool->started; i++)
        if (pool->helpers[i].queued < chosen->queued)
            chosen = &pool->helpers[i];
    return chosen;
}

static int queue_batch(struct thread_pool *pool, struct batch *batch, struct fail *fail)
{
    char *last_dir = strdup(batch->dir);
    if (!last_dir) {
        batch_free(batch);
        return fail_memory(fail);
    }
    pthread_mutex_lock(&pool->lock);
    struct helper *helper = choose(pool, batch);
    while (helper->queued >= QUEUE_MAX && pool->failed.code == 0)
        pthread_cond_wait(&pool->changed, &pool->lock);
    *helper->end = batch;
    helper->end = &batch->next;
    helper->queued++;
    pool->last = helper;
    free(pool->last_dir);
    pool->last_dir = last_dir;
    pthread_cond_broadcast(&pool->changed);
    int code = answer(pool, fail);
    pthread_mutex_unlock(&pool->lock);
    return code;
}

/* The open batch goes to a helper, or is made here where there is none. */
static int hand_over(struct thread_pool *pool, struct fail *fail)
{
    struct batch *batch = take_ptr(&pool->open);
    if (!batch)
        return 0;
    if (pool->started)
        return queue_batch(pool, batch, fail);
    int code = make_batch(pool, batch, fail);
    batch_free(batch);
    return code;
}

static int open_batch(struct thread_pool *pool, const struct pool_file *file, struct fail *fail)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    if (!batch || !(batch->dir = strdup(file->dir))) {
        free(batch);
        return fail_memory(fail);
    }
    pool->open = batch;
    batch->parent = fcntl(file->parent, F_DUPFD_CLOEXEC, 0);
    return batch->parent < 0 ? refuse(file, "open the directory of", fail) : 0;
}

static bool is_full(const struct batch *batch)
{
    return batch->count == BATCH_FILES || batch->bytes.len >= BATCH_BYTES;
}

/* Sees to it that there is an open batch with room for this file. */
static int make_room(struct thread_pool *pool, const struct pool_file *file, struct fail *fail)
{
    bool is_same_dir = pool->open && strcmp(pool->open->dir, file->dir) == 0;
    if (is_same_dir && !is_full(pool->open))
        return 0;
    if (pool->open && !pool->started)
        start(pool); /* more than one batch: it is worth it */
    int code = hand_over(pool, fail);
    if (code == 0)
        code = open_batch(pool, file, fail);
    return code;
}

int pool_add(struct thread_pool *pool, const struct pool_file *file, struct fail *fail)
{
    int code = make_room(pool, file, fail);
    if (code < 0)
        return code;
    struct batch *batch = pool->open;
    struct spec *spec = &batch->specs[batch->count++];
    *spec = (struct spec){.leaf = batch->bytes.len,
                          .len = file->content.len,
                          .mode = file->mode,
                          .times = {file->times[0], file->times[1]}};
    buffer_append(&batch->bytes, file->leaf, strlen(file->leaf) + 1);
    spec->content = batch->bytes.len;
    if (!buffer_append(&batch->bytes, file->content.data, file->content.len)) {
        batch->count--;
        return fail_memory(fail);
    }
    return 0;
}

int pool_wait(struct thread_pool *pool, struct fail *fail)
{
    int code = hand_over(pool, fail);
    pthread_mutex_lock(&pool->lock);
    while (!is_idle(pool))
        pthread_cond_wait(&pool->changed, &pool->lock);
    if (code == 0)
        code = answer(pool, fail);
    pthread_mutex_unlock(&pool->lock);
    return code;
}

/* ---- beginning and end -------------------------------------------------------------------- */

struct thread_pool *pool_create(mode_t umask, const atomic_bool *stop)
{
    struct thread_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->umask = umask;
    pool->stop = stop;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    return pool;
}

void pool_destroy(struct thread_pool **destroying)
{
    struct thread_pool *pool = take_ptr(destroying);
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ended = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->started; i++)
        pthread_join(pool->helpers[i].thread, NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    batch_free(pool->open);
    free(pool->last_dir);
    free(pool);
}
