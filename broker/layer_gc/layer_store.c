#include "broker/layer_gc/layer_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"

enum { ID_SIZE = 33, OWNER_SIZE = PATH_MAX + 64, HEX = 2 * LAYER_DIGEST_BYTES };
#define ENDING ".tar.lz4"
#define GOING ".going." /* a layer that is being removed begins so */

static int refuse(struct fail *fail, const char *what, const char *path)
{
    return fail_set(fail, -errno, "cannot %s %s: %s", what, path, strerror(errno));
}

/* ---- whose it is ---------------------------------------------------------------------------- */

/* The text of a small file; false where there is none. */
static bool read_text(int dir, const char *name, char *ret, size_t size)
{
    AUTO_CLOSE int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t len = file < 0 ? -1 : read(file, ret, size - 1);
    ret[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* Whole and synced or not at all; what is there already stays, and is no failure. */
static int write_text(int dir, const char *name, const char *text, struct fail *fail)
{
    char aside[64];
    snprintf(aside, sizeof(aside), "%.30s.%ld", name, (long)getpid());
    unlinkat(dir, aside, 0);
    AUTO_CLOSE int file = openat(dir, aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    size_t len = strlen(text);
    bool good = file >= 0 && write(file, text, len) == (ssize_t)len && fsync(file) == 0 &&
                (linkat(dir, aside, dir, name, 0) == 0 || errno == EEXIST) && fsync(dir) == 0;
    int code = good ? 0 : refuse(fail, "write", name);
    unlinkat(dir, aside, 0);
    return code;
}

/* The name a broker's data goes by, wherever it is moved: made once. */
static int get_id(int data, char ret[ID_SIZE], struct fail *fail)
{
    static const char name[] = "store-id";
    uint8_t random[(ID_SIZE - 1) / 2];
    if (read_text(data, name, ret, ID_SIZE))
        return 0;
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return refuse(fail, "make", name);
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(ret + 2 * i, 3, "%02x", random[i]);
    return write_text(data, name, ret, fail);
}

static int open_store(const char *store, struct fail *fail)
{
    if (mkdir(store, 0750) < 0 && errno != EEXIST)
        return refuse(fail, "make the store", store);
    int dir = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? refuse(fail, "open the store", store) : dir;
}

static int compare_owner(const char *store, char *owner, const char *id, struct fail *fail)
{
    char *data = strchr(owner, '\n');
    if (data)
        *data++ = '\0';
    if (strcmp(owner, id) == 0)
        return 0;
    return fail_set(fail, -EBUSY,
                    "the store %s belongs to the broker whose data is %.*s: choose "
                    "another store, or remove %s/" LAYER_STORE_OWNER_FILE " if that broker is no more",
                    store, data ? (int)strcspn(data, "\n") : 0, data ? data : "", store);
}

int layer_store_claim(const char *store, const char *data_dir, struct fail *fail)
{
    char id[ID_SIZE], owner[OWNER_SIZE];
    AUTO_FREE char *path = realpath(data_dir, NULL);
    AUTO_CLOSE int data = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data < 0 || !path)
        return refuse(fail, "open", data_dir);
    AUTO_CLOSE int dir = open_store(store, fail);
    if (dir < 0)
        return dir;
    int code = get_id(data, id, fail);
    if (code == 0 && !read_text(dir, LAYER_STORE_OWNER_FILE, owner, sizeof(owner))) {
        snprintf(owner, sizeof(owner), "%s\n%s\n", id, path);
        code = write_text(dir, LAYER_STORE_OWNER_FILE, owner, fail);
        if (code == 0 && !read_text(dir, LAYER_STORE_OWNER_FILE, owner, sizeof(owner)))
            code = refuse(fail, "read", LAYER_STORE_OWNER_FILE);
    }
    return code ? code : compare_owner(store, owner, id, fail);
}

/* ---- one layer ------------------------------------------------------------------------------ */

struct pass { /* one sweep in hand */
    struct layer_sweep *sweep;
    struct needed_layers needed;
    bool has_needed, cannot_read_needed; /* not asked for yet, when neither */
    struct fail *fail;
    int code; /* of what went wrong first */
};

static void note(struct pass *pass, const char *what, const char *path)
{
    if (pass->code == 0)
        pass->code = refuse(pass->fail, what, path);
}

static bool is_old(const struct pass *pass, const struct stat *it) { return it->st_mtime < pass->sweep->before_s; }

/* Back under its name, unless a new one took that meanwhile. */
static void put_back(int shelf, const char *aside, const char *name)
{
    if (linkat(shelf, aside, shelf, name, 0) == 0 || errno == EEXIST)
        unlinkat(shelf, aside, 0);
}

/*
 * A worker that packs the same layer now finds it there and touches it, or does not find it and
 * writes it anew: moved aside first, what was touched meanwhile is seen and put back.
 */
static void free_layer(struct pass *pass, int shelf, const char *name, const struct stat *before)
{
    char aside[NAME_MAX + 1];
    struct stat now;
    snprintf(aside, sizeof(aside), GOING "%.100s", name);
    if (renameat(shelf, name, shelf, aside) < 0) {
        if (errno != ENOENT)
            note(pass, "remove the layer", name);
        return;
    }
    if (fstatat(shelf, aside, &now, AT_SYMLINK_NOFOLLOW) < 0 || !is_old(pass, &now)) {
        put_back(shelf, aside, name);
        return;
    }
    if (unlinkat(shelf, aside, 0) < 0) {
        note(pass, "remove the layer", name);
        return;
    }
    pass->sweep->freed_layers++;
    pass->sweep->freed_bytes += (uint64_t)before->st_size;
}

/* Once a sweep; without an answer nothing is freed. */
static bool read_needed(struct pass *pass)
{
    struct fail why;
    if (pass->has_needed || pass->cannot_read_needed)
        return pass->has_needed;
    int code = pass->sweep->read_needed(pass->sweep->context, &pass->needed, &why);
    pass->has_needed = code == 0;
    pass->cannot_read_needed = code != 0;
    if (code && pass->code == 0)
        pass->code = fail_set(pass->fail, code, "%s", why.text);
    return pass->has_needed;
}

/* "ab<62 more digits>.tar.lz4" on the shelf "ab". */
static bool parse_layer(const char *shelf, const char *name, struct layer_digest *ret)
{
    return strncmp(name, shelf, 2) == 0 && layer_digest_parse(name, ret) && strcmp(name + HEX, ENDING) == 0;
}

static void see_file(struct pass *pass, int shelf, const char *shelf_name, const char *name)
{
    struct layer_digest digest;
    struct stat it;
    size_t going = strlen(GOING);
    if (strncmp(name, GOING, going) == 0 && parse_layer(shelf_name, name + going, &digest)) {
        put_back(shelf, name, name + going); /* a sweep was cut short; it is judged the next time */
        return;
    }
    if (!parse_layer(shelf_name, name, &digest) || fstatat(shelf, name, &it, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(it.st_mode))
        return;
    pass->sweep->layers++;
    pass->sweep->bytes += (uint64_t)it.st_size;
    if (is_old(pass, &it) && read_needed(pass) && !needed_layers_has(&pass->needed, &digest))
        free_layer(pass, shelf, name, &it);
}

/* ---- all of them ------------------------------------------------------------------------------ */

static void see_shelf(struct pass *pass, int store, const char *name)
{
    int fd = openat(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *shelf = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int code = 0;
    if (!shelf) {
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            note(pass, "read the shelf", name);
        if (fd >= 0)
            close(fd);
        return;
    }
    while (!atomic_load(pass->sweep->stop) && (code = dir_stream_next(shelf, &entry)) > 0)
        see_file(pass, fd, name, entry->d_name);
    if (code < 0)
        note(pass, "read the shelf", name);
    closedir(shelf);
}

int layer_store_sweep(struct layer_sweep *sweep, struct fail *fail)
{
    struct pass pass = {.sweep = sweep, .fail = fail};
    AUTO_CLOSE int store = open(sweep->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store < 0)
        return refuse(fail, "open the store", sweep->store);
    for (unsigned i = 0; i < 256 && !atomic_load(sweep->stop); i++) {
        char name[3];
        snprintf(name, sizeof(name), "%02x", i);
        see_shelf(&pass, store, name);
    }
    needed_layers_finish(&pass.needed);
    return pass.code;
}
