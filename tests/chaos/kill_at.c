/*
 * kill_at - ends a process at one of its own calls: preloaded into the broker, it dies as by kill
 * -9 just before the Nth write into a file at a place of it (what is written outlives a process,
 * synced or not), just after the Nth fdatasync, or just before the Nth message it sends.
 *
 *     LD_PRELOAD=libkill_at.so SLUICE_KILL_AT="pwrite before 5" sluice-broker ...
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { OUT_US = 50000 }; /* what was sent before is on its way: as if the disk, or the network, were slow */

static atomic_uint calls;
static char wanted_call[32], wanted_when[32];
static unsigned wanted; /* 0: nobody is to die */

static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_fdatasync)(int);
static int (*real_zmq_msg_send)(zmq_msg_t *, void *, int);

/* Before there is a second thread. */
__attribute__((constructor)) static void prepare(void)
{
    const char *order = getenv("SLUICE_KILL_AT");
    if (!order || sscanf(order, "%31s %31s %u", wanted_call, wanted_when, &wanted) != 3)
        wanted = 0;
    real_pwrite64 = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_zmq_msg_send = (int (*)(zmq_msg_t *, void *, int))dlsym(RTLD_NEXT, "zmq_msg_send");
}

/* Another `call` is about to be, or has been. */
static void pass(const char *call, const char *when)
{
    if (!wanted || strcmp(call, wanted_call) != 0 || strcmp(when, wanted_when) != 0 ||
        atomic_fetch_add(&calls, 1) + 1 < wanted)
        return;
    usleep(OUT_US);
    raise(SIGKILL);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    pass("pwrite", "before");
    return real_pwrite64(fd, bytes, size, at);
}

int fdatasync(int fd)
{
    int result = real_fdatasync(fd);
    pass("fdatasync", "after");
    return result;
}

int zmq_msg_send(zmq_msg_t *message, void *socket, int flags)
{
    pass("zmq_msg_send", "before");
    return real_zmq_msg_send(message, socket, flags);
}
