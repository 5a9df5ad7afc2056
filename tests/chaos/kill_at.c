/*
 * kill_at - ends a process at one of its own calls: preloaded into the broker, it dies as by kill -9
 * just before, or just after, the Nth fdatasync, or just before the Nth message it sends.
 *
 *     LD_PRELOAD=libkill_at.so SLUICE_KILL_AT="fdatasync before 5" sluice-broker ...
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { OUT_US = 50000 }; /* what was sent before is on its way: as if the disk, or the network, were slow */

static atomic_uint calls;

/* What happens now is `call` `when`; `counts`: and it is another one. */
static void pass(const char *call, const char *when, bool counts)
{
    static char wanted_call[32], wanted_when[32];
    static unsigned wanted;
    const char *order = getenv("SLUICE_KILL_AT");
    if (!order || (!wanted && sscanf(order, "%31s %31s %u", wanted_call, wanted_when, &wanted) != 3) ||
        strcmp(call, wanted_call) != 0)
        return;
    unsigned count = counts ? atomic_fetch_add(&calls, 1) + 1 : atomic_load(&calls);
    if (count < wanted || strcmp(when, wanted_when) != 0)
        return;
    usleep(OUT_US);
    raise(SIGKILL);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    pass("fdatasync", "before", true);
    int result = real(fd);
    pass("fdatasync", "after", false);
    return result;
}

int zmq_msg_send(zmq_msg_t *message, void *socket, int flags)
{
    static int (*real)(zmq_msg_t *, void *, int);
    if (!real)
        real = (int (*)(zmq_msg_t *, void *, int))dlsym(RTLD_NEXT, "zmq_msg_send");
    pass("zmq_msg_send", "before", true);
    return real(message, socket, flags);
}
