/*
 * lost_writes - what a power cut may take: preloaded into the broker, it notes which bytes of its log are written and
 * not synced, and makes each sync of it slow, so that there are such. Who kills the broker takes them away.
 *
 *     LD_PRELOAD=liblost_writes.so SLUICE_LOST_WRITES=FILE sluice-broker ...
 *
 * FILE then holds four numbers of 8 bytes: from where to where of the log was written since the last sync began, and
 * likewise before a sync that has not ended.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOW_MAX_US = 20000 };

struct range { /* empty: from == to */
    uint64_t from, to;
};

static struct unsynced {
    struct range written, in_sync;
} * unsynced;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_fdatasync)(int);

/* Before there is a second thread. */
__attribute__((constructor)) static void prepare(void)
{
    const char *name = getenv("SLUICE_LOST_WRITES");
    real_pwrite64 = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int fd = name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    void *memory = ftruncate(fd, sizeof(*unsynced)) == 0
                       ? mmap(NULL, sizeof(*unsynced), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    close(fd);
    if (memory == MAP_FAILED)
        return;
    unsynced = memory;
    *unsynced = (struct unsynced){0};
}

static bool is_log(int fd)
{
    char link[64], name[512];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = unsynced ? readlink(link, name, sizeof(name)) : -1;
    return len > 4 && memcmp(name + len - 4, "-wal", 4) == 0;
}

static void add(struct range *range, struct range more)
{
    if (more.from == more.to)
        return;
    if (range->from == range->to)
        *range = more;
    range->from = more.from < range->from ? more.from : range->from;
    range->to = more.to > range->to ? more.to : range->to;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    if (is_log(fd)) {
        pthread_mutex_lock(&mutex);
        add(&unsynced->written, (struct range){(uint64_t)at, (uint64_t)at + size});
        pthread_mutex_unlock(&mutex);
    }
    return real_pwrite64(fd, bytes, size, at);
}

int fdatasync(int fd)
{
    if (!is_log(fd))
        return real_fdatasync(fd);
    pthread_mutex_lock(&mutex);
    add(&unsynced->in_sync, unsynced->written);
    unsynced->written = (struct range){0};
    pthread_mutex_unlock(&mutex);
    usleep((useconds_t)(rand() % SLOW_MAX_US));
    int result = real_fdatasync(fd);
    if (result == 0) {
        pthread_mutex_lock(&mutex);
        unsynced->in_sync = (struct range){0};
        pthread_mutex_unlock(&mutex);
    }
    return result;
}
