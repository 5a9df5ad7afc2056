#include "broker/net/certs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum { ROLES = ROLE_BROKER, PATH_SIZE = 4096, RACY_MS = 2000, FILES_LOOK_MS = 1000, FILES_SHARE = 50 };

/* What can be seen of a folder's files without reading them: one that is written in place shows in its own times. */
struct seal {
    uint64_t sum;      /* of all of them, in any order */
    int64_t newest_ms; /* the last change */
};

struct folder {
    char path[PATH_SIZE];
    struct timespec changed; /* as it was when it was read; zero: it is not there */
    int64_t read_wall_ms;
    struct seal files;
};

struct entry {
    char public_text[KEY_TEXT_SIZE];
    struct cert who;
};

/* By public key, for bsearch. */
struct entries {
    struct entry *items;
    size_t count, capacity;
};

struct certs {
    struct key own;
    struct folder folders[ROLES];
    pthread_mutex_t lock;
    struct entries known;
    int64_t look_ms;       /* when to look at the folders next ... */
    int64_t files_look_ms; /* ... and at each of their files */
    uint64_t removed;
};

/* ---- reading a folder --------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->public_text, ((const struct entry *)b)->public_text);
}

static const struct cert *find(const struct entries *entries, const char *public_text)
{
    struct entry wanted = {0};
    if (strlen(public_text) >= sizeof(wanted.public_text) || !entries->count)
        return NULL;
    strcpy(wanted.public_text, public_text);
    const struct entry *found = bsearch(&wanted, entries->items, entries->count, sizeof(wanted), compare);
    return found ? &found->who : NULL;
}

/* In no order until sort_entries. */
static bool put(struct entries *entries, const char *public_text, const struct cert *who)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? entries->capacity * 2 : 64;
        struct entry *items = realloc(entries->items, capacity * sizeof(*items));
        if (!items)
            return false;
        entries->items = items;
        entries->capacity = capacity;
    }
    struct entry *entry = &entries->items[entries->count++];
    entry->who = *who;
    memcpy(entry->public_text, public_text, KEY_TEXT_SIZE);
    return true;
}

static void skip(const char *path, const char *why)
{
    log_event(LOG_WARN, "keys.skipped", "file=%s why=\"%s\" action=nobody-known-by-it", path, why);
}

static bool is_certificate(const char *file)
{
    size_t len = strlen(file);
    return len >= 5 && file[0] != '.' && strcmp(file + len - 4, ".pub") == 0;
}

static void take_file(struct entries *entries, const struct folder *folder, enum key_role role, const char *file)
{
    char path[PATH_SIZE + 256], name[256];
    struct key key;
    struct fail fail;
    if (!is_certificate(file))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - 4), file);
    snprintf(path, sizeof(path), "%s/%s", folder->path, file);
    if (key_read(path, &key, &fail)) {
        skip(path, fail.text);
        return;
    }
    struct cert who = {.role = role};
    memcpy(who.name, key.name, sizeof(who.name));
    if (key.role != role || strcmp(key.name, name) != 0)
        skip(path, "its role or name is not that of its path");
    else if (entries->count >= CERTS_MAX)
        skip(path, "no more keys fit");
    else if (!put(entries, key.public_text, &who))
        skip(path, "out of memory");
    key_wipe(&key);
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

static void seal_file(int dir_fd, const char *file, struct seal *seal)
{
    struct stat info;
    if (fstatat(dir_fd, file, &info, 0) != 0)
        return;
    int64_t changed_ms = (int64_t)info.st_ctim.tv_sec * 1000 + info.st_ctim.tv_nsec / 1000000;
    uint64_t sum = mix(mix(info.st_ino, (uint64_t)info.st_size), (uint64_t)info.st_mtim.tv_sec);
    sum = mix(mix(sum, (uint64_t)info.st_mtim.tv_nsec), (uint64_t)info.st_ctim.tv_sec);
    seal->sum += mix(sum, (uint64_t)info.st_ctim.tv_nsec);
    if (changed_ms > seal->newest_ms)
        seal->newest_ms = changed_ms;
}

/* Leaves the directory at its beginning. 0, or negative errno. */
static int seal_all(DIR *dir, struct seal *ret)
{
    const struct dirent *entry;
    int code;
    while ((code = dir_stream_next(dir, &entry)) > 0)
        if (is_certificate(entry->d_name))
            seal_file(dirfd(dir), entry->d_name, ret);
    rewinddir(dir);
    return code;
}

static bool refuse_folder(const struct folder *folder, int code)
{
    log_event(LOG_ERROR, "keys.unreadable", "directory=%s why=\"%s\" action=kept-as-it-was", folder->path,
              strerror(-code));
    return false;
}

/* False when the folder is there and cannot be read, all of it; then nothing of it is among `entries`. */
static bool read_folder(struct entries *entries, struct folder *folder, enum key_role role)
{
    const size_t before = entries->count;
    const struct dirent *entry;
    struct stat info;
    struct seal files = {0};
    AUTO_DIR dir = opendir(folder->path);
    if (!dir && errno == ENOENT) {
        folder->changed = (struct timespec){0};
        folder->files = (struct seal){0};
        return true;
    }
    if (!dir || fstat(dirfd(dir), &info) != 0)
        return refuse_folder(folder, -errno);
    const int64_t read_wall_ms = clock_wall_ms();
    int code = seal_all(dir, &files); /* before they are read: what changes meanwhile is seen later */
    while (code >= 0 && (code = dir_stream_next(dir, &entry)) > 0)
        take_file(entries, folder, role, entry->d_name);
    if (code < 0) {
        entries->count = before;
        return refuse_folder(folder, code);
    }
    folder->changed = info.st_mtim;
    folder->read_wall_ms = read_wall_ms;
    folder->files = files;
    return true;
}

static void keep_role(struct entries *entries, const struct entries *from, enum key_role role)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->items[i].who.role == role)
            put(entries, from->items[i].public_text, &from->items[i].who);
}

/* A key that stands in two places is nobody's: which of the two is meant cannot be told. */
static void sort_entries(struct entries *entries)
{
    size_t kept = 0;
    if (entries->count)
        qsort(entries->items, entries->count, sizeof(*entries->items), compare);
    for (size_t i = 0, end; i < entries->count; i = end) {
        const struct entry *entry = &entries->items[i];
        for (end = i + 1; end < entries->count && compare(&entries->items[end], entry) == 0; end++)
            skip(entries->items[end].who.name, "its key stands under another name or role, too");
        if (end == i + 1)
            entries->items[kept++] = *entry;
    }
    entries->count = kept;
}

static bool lost_somebody(const struct entries *before, const struct entries *now)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct entry *entry = &before->items[i];
        const struct cert *still = find(now, entry->public_text);
        if (!still || still->role != entry->who.role || strcmp(still->name, entry->who.name) != 0)
            return true;
    }
    return false;
}

static void read_all(struct certs *certs)
{
    struct entries entries = {0};
    for (int role = 0; role < ROLES; role++)
        if (!read_folder(&entries, &certs->folders[role], (enum key_role)role))
            keep_role(&entries, &certs->known, (enum key_role)role);
    sort_entries(&entries);
    bool is_removal = lost_somebody(&certs->known, &entries);
    certs->removed += is_removal;
    if (is_removal || entries.count != certs->known.count)
        log_event(LOG_INFO, "keys.read", "known=%zu before=%zu", entries.count, certs->known.count);
    free(certs->known.items);
    certs->known = entries;
}

/* A folder that changed just before it was read may have changed again within its clock's tick. */
static bool has_changed(const struct folder *folder)
{
    struct stat info;
    if (stat(folder->path, &info) != 0)
        return folder->changed.tv_sec != 0 || folder->changed.tv_nsec != 0;
    int64_t changed_ms = (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
    return info.st_mtim.tv_sec != folder->changed.tv_sec || info.st_mtim.tv_nsec != folder->changed.tv_nsec ||
           folder->read_wall_ms - changed_ms < RACY_MS;
}

/* One that was written just before it was read may have been written again within its clock's tick. */
static bool have_files_changed(const struct folder *folder)
{
    struct seal files = {0};
    AUTO_DIR dir = opendir(folder->path);
    if (!dir)
        return false; /* has_changed sees to that */
    return seal_all(dir, &files) < 0 || files.sum != folder->files.sum ||
           folder->read_wall_ms - files.newest_ms < RACY_MS;
}

/* Many files take their time: no more than a small share of it goes to looking at them. */
static bool has_any_file_changed(struct certs *certs, int64_t now_ms)
{
    bool changed = false;
    if (now_ms < certs->files_look_ms)
        return false;
    for (int role = 0; role < ROLES; role++)
        changed |= have_files_changed(&certs->folders[role]);
    int64_t end_ms = clock_ms(), pause_ms = (end_ms - now_ms) * FILES_SHARE;
    certs->files_look_ms = end_ms + (pause_ms > FILES_LOOK_MS ? pause_ms : FILES_LOOK_MS);
    return changed;
}

static void look(struct certs *certs)
{
    int64_t now_ms = clock_ms();
    if (now_ms < certs->look_ms)
        return;
    bool changed = has_any_file_changed(certs, now_ms);
    for (int role = 0; role < ROLES; role++)
        changed |= has_changed(&certs->folders[role]);
    if (changed)
        read_all(certs);
    certs->look_ms = now_ms + CERTS_LOOK_MS;
}

/* ---- life --------------------------------------------------------------------------------- */

static int read_own(struct certs *certs, const char *dir, struct fail *fail)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/broker.key", dir);
    int code = key_read(path, &certs->own, fail);
    if (code == -ENOENT)
        return fail_set(fail, code, "%s is not there: make it with `sluice keys init %s`", path, dir);
    if (code == 0 && (certs->own.role != ROLE_BROKER || !certs->own.secret_text[0]))
        return fail_set(fail, -EINVAL, "%s is not a broker's key with its secret", path);
    return code;
}

int certs_open(struct certs **ret, const char *dir, struct fail *fail)
{
    if (strlen(dir) > PATH_SIZE - 64)
        return fail_set(fail, -ENAMETOOLONG, "--keys: the path is too long");
    struct certs *certs = calloc(1, sizeof(*certs));
    if (!certs)
        return fail_set(fail, -ENOMEM, "out of memory");
    pthread_mutex_init(&certs->lock, NULL);
    int code = read_own(certs, dir, fail);
    if (code) {
        certs_close(&certs);
        return code;
    }
    for (int role = 0; role < ROLES; role++)
        snprintf(certs->folders[role].path, PATH_SIZE, "%s/trusted/%s", dir, key_role_name((enum key_role)role));
    read_all(certs);
    *ret = certs;
    return 0;
}

void certs_close(struct certs **closing)
{
    struct certs *certs = take_ptr(closing);
    if (!certs)
        return;
    key_wipe(&certs->own);
    free(certs->known.items);
    pthread_mutex_destroy(&certs->lock);
    free(certs);
}

const struct key *certs_own_key(const struct certs *certs) { return &certs->own; }

/* ---- asking ------------------------------------------------------------------------------- */

bool certs_find(struct certs *certs, const char *public_text, struct cert *ret)
{
    pthread_mutex_lock(&certs->lock);
    look(certs);
    const struct cert *found = find(&certs->known, public_text);
    if (found)
        *ret = *found;
    pthread_mutex_unlock(&certs->lock);
    return found != NULL;
}

uint64_t certs_removed(struct certs *certs)
{
    pthread_mutex_lock(&certs->lock);
    look(certs);
    uint64_t removed = certs->removed;
    pthread_mutex_unlock(&certs->lock);
    return removed;
}
