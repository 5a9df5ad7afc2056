#include "workers/stages/build/build_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/offload.h"
#include "workers/stages/sandbox/parents.h"

static const char nothing[] = "none"; /* in place of a digest */

/* ---- paths --------------------------------------------------------------------------------------- */

static const char *hex_of(const char *digest) { return digest + strlen("sha256:"); }

static char *key_path(const struct build_store *store, const char *key, const char *end)
{
    char *path = NULL;
    return asprintf(&path, "%s/keys/%s%s", store->path, hex_of(key), end) < 0 ? NULL : path;
}

static char *layer_path(const struct build_store *store, const char *digest)
{
    char *path = NULL;
    return asprintf(&path, "%s/%.2s/%s.tar.lz4", store->path, hex_of(digest), hex_of(digest)) < 0 ? NULL : path;
}

/* ---- what is old goes ------------------------------------------------------------------------------ */

static void sweep_folder(const char *path, int64_t now_s)
{
    DIR *stream = opendir(path);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        struct stat it;
        if (fstatat(dirfd(stream), entry->d_name, &it, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(it.st_mode) &&
            now_s - it.st_mtime > BUILD_IDLE_S)
            unlinkat(dirfd(stream), entry->d_name, 0);
    }
    if (stream)
        closedir(stream);
}

/* Its folders are keys/ and, of layers, 00/ to ff/. */
static void sweep(const char *store, int64_t now_s)
{
    DIR *stream = opendir(store);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        AUTO_FREE char *path = entry->d_name[0] == '.' ? NULL : dirtree_join(store, entry->d_name);
        if (path)
            sweep_folder(path, now_s);
    }
    if (stream)
        closedir(stream);
}

static void sweep_now_and_then(const char *store)
{
    static _Atomic int64_t last_s;
    int64_t now_s = clock_wall_ms() / 1000, before_s = last_s;
    if (now_s - before_s >= BUILD_SWEEP_S && atomic_compare_exchange_strong(&last_s, &before_s, now_s))
        sweep(store, now_s);
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static int open_work(void *arg, const atomic_bool *stop)
{
    const struct build_store *store = arg;
    AUTO_FREE char *keys = dirtree_join(store->path, "keys");
    (void)stop;
    if (!keys)
        return -ENOMEM;
    if ((mkdir(store->path, 0777) < 0 && errno != EEXIST) || (mkdir(keys, 0777) < 0 && errno != EEXIST))
        return -errno;
    sweep_now_and_then(store->path);
    return 0;
}

int build_store_open(const struct layers *of, struct build_store *ret, struct fail *fail)
{
    int code = parents_layers(of, &ret->layers, &ret->path, fail);
    if (code < 0)
        return code;
    code = offload_run(open_work, ret, fail);
    return code < 0 ? fail_set(fail, code, "cannot make %s: %s", ret->path, strerror(-code)) : 0;
}

void build_store_close(struct build_store *store) { free(take_ptr(&store->path)); }

/* ---- finding ------------------------------------------------------------------------------------------ */

struct entry {
    const struct build_store *store;
    const char *key;
    char layer[DIGEST_SIZE];
};

static bool touch(const char *path) { return utimensat(AT_FDCWD, path, NULL, 0) == 0; }

static int find_work(void *arg, const atomic_bool *stop)
{
    struct entry *entry = arg;
    AUTO_FREE char *path = key_path(entry->store, entry->key, "");
    AUTO_CLOSE int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t len = file < 0 ? -1 : read(file, entry->layer, sizeof(entry->layer) - 1);
    (void)stop;
    entry->layer[len < 0 ? 0 : len] = '\0';
    if (len <= 0 || !touch(path))
        return 0;
    if (strcmp(entry->layer, nothing) == 0) {
        entry->layer[0] = '\0';
        return 1;
    }
    AUTO_FREE char *layer = digest_is_valid(entry->layer) ? layer_path(entry->store, entry->layer) : NULL;
    return layer && touch(layer);
}

/* 1: it is there; 0: it is not. */
static int find(const struct build_store *store, const char *key, char layer[DIGEST_SIZE], struct fail *fail)
{
    struct entry entry = {.store = store, .key = key};
    int code = offload_run(find_work, &entry, fail);
    memcpy(layer, entry.layer, DIGEST_SIZE);
    return code;
}

static int put_work(void *arg, const atomic_bool *stop)
{
    const struct entry *entry = arg;
    const char *text = entry->layer[0] ? entry->layer : nothing;
    AUTO_FREE char *path = key_path(entry->store, entry->key, "");
    AUTO_FREE char *beside = key_path(entry->store, entry->key, ".XXXXXX");
    (void)stop;
    if (!path || !beside)
        return -ENOMEM;
    AUTO_CLOSE int file = mkostemp(beside, O_CLOEXEC);
    if (file < 0)
        return -errno;
    if (dirtree_write_at(file, text, strlen(text), 0) < 0 || fchmod(file, 0644) < 0 || fsync(file) < 0 ||
        rename(beside, path) < 0) {
        int error = errno;
        unlink(beside);
        return -error;
    }
    return 0;
}

static int put(const struct build_store *store, const char *key, const char *layer, struct fail *fail)
{
    struct entry entry = {.store = store, .key = key};
    snprintf(entry.layer, sizeof(entry.layer), "%s", layer);
    int code = offload_run(put_work, &entry, fail);
    return code < 0 ? fail_set(fail, code, "cannot note a layer in %s: %s", store->path, strerror(-code)) : 0;
}

/* ---- locks ---------------------------------------------------------------------------------------------- */

static int lock_work(void *arg, const atomic_bool *stop)
{
    const struct entry *entry = arg;
    AUTO_FREE char *path = key_path(entry->store, entry->key, ".lock");
    AUTO_CLOSE int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    (void)stop;
    if (file < 0)
        return -EOPNOTSUPP;
    if (flock(file, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -EOPNOTSUPP;
    return take_fd(&file);
}

/* A descriptor, closed to let others; -1 where files cannot be locked. */
static int lock(const struct build_store *store, const char *key, int64_t until_ms, int *ret, struct fail *fail)
{
    struct entry entry = {.store = store, .key = key};
    for (;;) {
        int code = offload_run(lock_work, &entry, fail);
        *ret = code < 0 ? -1 : code;
        if (code >= 0 || code == -EOPNOTSUPP)
            return 0;
        if (code != -EAGAIN)
            return code;
        if (loop_now_ms() >= until_ms)
            return fail_set(fail, -ETIMEDOUT, "another worker builds the same, and did not end in time");
        code = await_until(loop_now_ms() + BUILD_LOCK_POLL_MS, fail);
        if (code < 0)
            return code;
    }
}

/* Who has the lock looks again: it may have been made meanwhile. */
static int make_once(const struct build_store *store, const char *key, int64_t until_ms, build_maker make, void *arg,
                     char ret[DIGEST_SIZE], struct fail *fail)
{
    AUTO_CLOSE int held = -1;
    int code = lock(store, key, until_ms, &held, fail);
    if (code == 0)
        code = find(store, key, ret, fail);
    if (code != 0)
        return code < 0 ? code : 0;
    code = make(arg, ret);
    return code < 0 ? code : put(store, key, ret, fail);
}

int build_store_get(const struct build_store *store, const char *key, int64_t until_ms, build_maker make, void *arg,
                    char ret[DIGEST_SIZE], struct fail *fail)
{
    int code = find(store, key, ret, fail);
    if (code == 0)
        code = make_once(store, key, until_ms, make, arg, ret, fail);
    return code < 0 ? code : 0;
}
