#include "workers/images/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "workers/files/locked_dir.h"
#include "workers/images/making.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/offload.h"
#include "workers/files/tree_index.h"
#include "workers/files/dirtree.h"

struct memo { /* what a name stood for */
    struct memo *next;
    char *name, *path;
    char *real;       /* what the name led to */
    char *watch;      /* NULL: a plain directory, whose path that is */
    struct stat seen; /* of `watch` */
    struct image_config config;
    int64_t config_ms; /* its checked_ms when the config was read; 0: never */
    int64_t checked_ms;
};

struct waiter {
    struct waiter *next;
    struct fiber *fiber;
};

struct making {
    struct making *next;
    struct images *images;
    char *name;
    struct image_making *process;
    struct waiter *waiters;
    size_t users; /* fibers within await_making */
};

struct images {
    struct loop *loop;
    const char *cache;
    const struct image_list *list;
    uint64_t max_bytes;
    char program[4096];
    struct memo *memos; /* the latest first */
    size_t memo_count;
    struct making *makings;
};

/* ---- life ----------------------------------------------------------------------------------- */

/* Beside this program, or in ../workers of it, as in a build tree. */
static void find_program(char *ret, size_t size)
{
    char self[4000];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[len < 0 ? 0 : len] = '\0';
    char *slash = strrchr(self, '/');
    *(slash ? slash : self) = '\0';
    snprintf(ret, size, "%s/sluice-image", self);
    if (access(ret, X_OK) == 0)
        return;
    char *up = strrchr(self, '/');
    snprintf(ret, size, "%.*s/workers/sluice-image", up ? (int)(up - self) : 0, self);
    if (access(ret, X_OK) < 0)
        snprintf(ret, size, "%s/sluice-image", self); /* for the sentence that says it is not there */
}

struct images *images_create(struct loop *loop, const char *cache, uint64_t max_bytes, const struct image_list *list)
{
    struct images *images = calloc(1, sizeof(*images));
    if (!images)
        return NULL;
    images->loop = loop;
    images->cache = cache;
    images->list = list;
    images->max_bytes = max_bytes;
    find_program(images->program, sizeof(images->program));
    return images;
}

static void free_memo(struct memo *memo)
{
    free(memo->name);
    free(memo->path);
    free(memo->real);
    free(memo->watch);
    image_config_finish(&memo->config);
    free(memo);
}

static void drop_making(struct making *making)
{
    struct making **at = &making->images->makings;
    while (*at != making)
        at = &(*at)->next;
    *at = making->next;
    image_making_destroy(&making->process);
    free(making->name);
    free(making);
}

void images_destroy(struct images **images)
{
    struct images *gone = take_ptr(images);
    if (!gone)
        return;
    while (gone->makings)
        drop_making(gone->makings);
    for (struct memo *memo; (memo = gone->memos);) {
        gone->memos = memo->next;
        free_memo(memo);
    }
    free(gone);
}

void image_hold_release(struct image_hold *hold)
{
    if (!hold->path)
        return;
    cleanup_close(&hold->lock);
    free(hold->path);
    image_config_finish(&hold->config);
    *hold = (struct image_hold){.lock = -1};
}

/* A prepared one is held by the directory that its root is in. */
static int look_at_prepared(const struct image_hold *hold, struct fail *fail)
{
    AUTO_FREE char *holder = tree_index_holder(hold->path);
    if (!holder)
        return fail_set(fail, -EIO, "out of memory");
    if (!locked_dir_is_at(hold->lock, holder))
        return -ENOMEDIUM;
    int code = tree_index_look(holder, fail);
    if (code < 0) {
        fail_wrap(fail, "a prepared image was changed");
        locked_dir_set_aside(hold->lock, holder);
    }
    return code;
}

int image_hold_look(const struct image_hold *hold, struct fail *fail)
{
    struct stat now;
    int code = 0;
    if (!hold->path || strcmp(hold->path, "host") == 0)
        return 0;
    if (stat(hold->path, &now) < 0)
        code = -ENOMEDIUM;
    else if (hold->lock >= 0)
        code = look_at_prepared(hold, fail);
    else if (now.st_dev != hold->dev || now.st_ino != hold->ino)
        code = -ENOMEDIUM;
    if (code == -ENOMEDIUM)
        fail_set(fail, code, "the image %s is not there any more, or is another one", hold->path);
    return code;
}

/* ---- what is remembered --------------------------------------------------------------------- */

static struct memo **find_memo(struct images *images, const char *name)
{
    struct memo **at = &images->memos;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void forget(struct images *images, const char *name)
{
    struct memo **at = find_memo(images, name), *memo = *at;
    if (!memo)
        return;
    *at = memo->next;
    images->memo_count--;
    free_memo(memo);
}

/* Without memory for it, the next one asks again. */
static void remember(struct images *images, const char *name, const char *real, const char *path, const char *watch,
                     const struct stat *seen)
{
    forget(images, name);
    if (images->memo_count == IMAGES_REMEMBERED) {
        struct memo **last = &images->memos;
        while ((*last)->next)
            last = &(*last)->next;
        free_memo(take_ptr(last));
        images->memo_count--;
    }
    struct memo *memo = calloc(1, sizeof(*memo));
    if (!memo)
        return;
    memo->name = strdup(name);
    memo->path = strdup(path);
    memo->real = strdup(real);
    memo->watch = watch ? strdup(watch) : NULL;
    if (!memo->name || !memo->path || !memo->real || (watch && !memo->watch)) {
        free_memo(memo);
        return;
    }
    memo->seen = *seen;
    memo->checked_ms = loop_now_ms();
    memo->next = images->memos;
    images->memos = memo;
    images->memo_count++;
}

/* ---- looks at the image's file system, which may not answer: offloaded ---------------------- */

struct look {
    const struct image_list *list;
    const char *name, *watch; /* watch: looked at in place of what the name leads to */
    char *real;               /* what that is; the caller's */
    struct stat it;
    bool is_packed; /* a directory that may be no root, but hold one: sluice-image knows */
    struct fail *fail;
};

static int look_work(void *arg, const atomic_bool *stop)
{
    struct look *look = arg;
    (void)stop;
    int code = image_list_find(look->list, look->name, &look->real, look->fail);
    if (code < 0)
        return code;
    AUTO_CLOSE int dir = open(look->watch ? look->watch : look->real, O_PATH | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &look->it) < 0)
        return 1; /* an answer, too: sluice-image says it in words */
    look->is_packed = faccessat(dir, "oci-layout", F_OK, 0) == 0 || faccessat(dir, "manifest.json", F_OK, 0) == 0;
    return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_plain(const struct look *look) { return S_ISDIR(look->it.st_mode) && !look->is_packed; }

static bool is_as_remembered(const struct memo *memo, const struct look *look)
{
    return strcmp(memo->real, look->real) == 0 && (memo->watch ? is_same(&memo->seen, &look->it) : is_plain(look));
}

/* 1: it is what it was; 0: it is not, or was never seen. */
static int recall(struct images *images, const char *name, struct fail *fail)
{
    struct memo *memo = *find_memo(images, name);
    if (!memo)
        return 0;
    if (loop_now_ms() - memo->checked_ms < IMAGES_FRESH_MS)
        return 1;
    AUTO_FREE char *watch = memo->watch ? strdup(memo->watch) : NULL;
    struct look look = {.list = images->list, .name = name, .watch = watch, .fail = fail};
    int code = !watch && memo->watch ? -ENOMEM : offload_run(look_work, &look, fail);
    AUTO_FREE char *real = look.real;
    if (code < 0)
        return code;
    memo = *find_memo(images, name); /* it may have gone meanwhile */
    if (memo && code == 0 && is_as_remembered(memo, &look)) {
        memo->checked_ms = loop_now_ms();
        memo->seen = look.it;
        return 1;
    }
    forget(images, name);
    return 0;
}

/* ---- making ------------------------------------------------------------------------------------ */

static void making_ended(void *arg)
{
    struct making *making = arg;
    for (struct waiter *waiter = making->waiters; waiter; waiter = waiter->next)
        fiber_wake(waiter->fiber);
    if (making->users == 0)
        drop_making(making);
}

static struct making *find_making(struct images *images, const char *name, struct fail *fail)
{
    struct making *making = images->makings;
    while (making && strcmp(making->name, name) != 0)
        making = making->next;
    if (making)
        return making;
    making = calloc(1, sizeof(*making));
    if (!making || !(making->name = strdup(name))) {
        free(making);
        fail_set(fail, -EIO, "out of memory");
        return NULL;
    }
    const struct image_order_words order = {
        .program = images->program, .cache = images->cache, .image = name, .max_bytes = images->max_bytes};
    making->images = images;
    making->next = images->makings;
    images->makings = making;
    making->process = image_making_start(images->loop, &order, making_ended, making, fail);
    if (!making->process) {
        drop_making(making);
        return NULL;
    }
    return making;
}

static void stop_waiting(struct making *making, struct waiter *waiter)
{
    struct waiter **at = &making->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    making->users--;
}

/* Its path and what to watch, copied: the caller's to image_made_finish. */
static int copy_result(const struct image_made *from, struct image_made *ret, struct fail *fail)
{
    if (from->code < 0)
        return fail_set(fail, from->code, "%s", from->fail.text);
    ret->path = strdup(from->path);
    ret->watch = from->watch ? strdup(from->watch) : NULL;
    if (ret->path && (!from->watch || ret->watch))
        return 0;
    image_made_finish(ret);
    return fail_set(fail, -EIO, "out of memory");
}

static int await_making(struct images *images, const char *name, struct image_made *ret, struct fail *fail)
{
    struct making *making = find_making(images, name, fail);
    const struct image_made *made = NULL;
    int code = 0;
    if (!making)
        return fail->code;
    struct waiter waiter = {.next = making->waiters, .fiber = fiber_current()};
    making->waiters = &waiter;
    making->users++;
    while (!(made = image_making_result(making->process)) && code == 0)
        code = await_wake(-1);
    stop_waiting(making, &waiter);
    if (made)
        code = copy_result(made, ret, fail);
    else
        fail_set(fail, code, "the image %.300s is still being prepared", name);
    if (making->users == 0 && (made || code == -ECANCELED))
        drop_making(making);
    return code;
}

/* By what it leads to: that is what was looked at. */
static int learn_packed(struct images *images, const char *name, const char *real, struct fail *fail)
{
    struct image_made made = {0};
    struct look look = {.list = images->list, .name = name, .fail = fail};
    int code = await_making(images, real, &made, fail);
    if (code == 0) {
        look.watch = made.watch;
        code = offload_run(look_work, &look, fail);
    }
    AUTO_FREE char *again = look.real;
    if (code == 0 && strcmp(again, real) == 0)
        remember(images, name, real, made.path, made.watch, &look.it);
    else if (code == 0)
        code = 1;
    image_made_finish(&made);
    return code > 0 ? fail_set(fail, -EINVAL, "there is no image %.300s any more", name) : code;
}

/* Finds out what a name stands for, unpacks it where it must be, and remembers it. */
static int learn(struct images *images, const char *name, struct fail *fail)
{
    struct look look = {.list = images->list, .name = name, .fail = fail};
    int code = offload_run(look_work, &look, fail);
    AUTO_FREE char *real = look.real;
    if (code < 0)
        return code;
    if (code > 0 || !is_plain(&look))
        return learn_packed(images, name, real, fail);
    remember(images, name, real, real, NULL, &look.it);
    return 0;
}

/* ---- what they say of themselves ------------------------------------------------------------------ */

struct saying {
    char *real, *path, *prepared; /* prepared: the directory of its key, or NULL */
    struct image_config config;
    struct fail *fail;
};

static int saying_work(void *arg, const atomic_bool *stop)
{
    struct saying *saying = arg;
    (void)stop;
    return image_config_load(saying->real, saying->path, saying->prepared, &saying->config, saying->fail);
}

static bool begin_saying(struct saying *saying, const struct memo *memo)
{
    saying->real = strdup(memo->real);
    saying->path = strdup(memo->path);
    saying->prepared = memo->watch && saying->path ? dirtree_parent(saying->path) : NULL;
    return saying->real && saying->path && (saying->prepared || !memo->watch);
}

static void end_saying(struct saying *saying)
{
    free(saying->real);
    free(saying->path);
    free(saying->prepared);
    image_config_finish(&saying->config);
}

/* As often as it is looked whether the image is the same. */
static int learn_config(struct images *images, const char *name, struct fail *fail)
{
    struct memo *memo = *find_memo(images, name);
    if (!memo || memo->config_ms == memo->checked_ms)
        return 0;
    const int64_t checked_ms = memo->checked_ms;
    struct saying saying = {.fail = fail};
    int code = begin_saying(&saying, memo) ? offload_run(saying_work, &saying, fail)
                                           : fail_set(fail, -EIO, "out of memory");
    memo = *find_memo(images, name); /* it may have gone meanwhile */
    if (code == 0 && memo) {
        image_config_finish(&memo->config);
        memo->config = saying.config;
        memo->config_ms = checked_ms;
        saying.config = (struct image_config){0};
    }
    end_saying(&saying);
    return code;
}

/* ---- holding -------------------------------------------------------------------------------------- */

/* What is remembered is unlocked: 1; 0: it was removed from the cache. */
static int hold_memo(struct images *images, const char *name, struct image_hold *ret, struct fail *fail)
{
    const struct memo *memo = *find_memo(images, name);
    if (!memo)
        return fail_set(fail, -EIO, "out of memory");
    AUTO_FREE char *path = strdup(memo->path);
    if (!path)
        return fail_set(fail, -EIO, "out of memory");
    struct image_hold hold = {.lock = -1, .dev = memo->seen.st_dev, .ino = memo->seen.st_ino};
    if (memo->watch) {
        AUTO_FREE char *key = dirtree_parent(path); /* <key>/root: the key's directory is held */
        if (!key)
            return fail_set(fail, -EIO, "out of memory");
        hold.lock = locked_dir_hold(key);
        if (hold.lock < 0)
            return 0;
    }
    if (!image_config_copy(&memo->config, &hold.config)) {
        cleanup_close(&hold.lock);
        return fail_set(fail, -EIO, "out of memory");
    }
    hold.path = take_ptr(&path);
    *ret = hold;
    return 1;
}

int images_hold(struct images *images, const char *name, struct image_hold *ret, struct fail *fail)
{
    enum { TRIES = 8 };
    struct fail unasked;
    fail = fail ? fail : &unasked;
    if (strcmp(name, "host") == 0) {
        *ret = (struct image_hold){.path = strdup(name), .lock = -1};
        return ret->path ? 0 : fail_set(fail, -EIO, "out of memory");
    }
    for (int tries = 0; tries < TRIES; tries++) {
        int code = recall(images, name, fail);
        if (code == 0)
            code = learn(images, name, fail);
        if (code >= 0 && (code = learn_config(images, name, fail)) == 0)
            code = hold_memo(images, name, ret, fail);
        if (code != 0)
            return code < 0 ? code : 0;
        forget(images, name);
    }
    return fail_set(fail, -EIO, "the image %.300s is removed as often as it is prepared", name);
}
