/*
 * spawner_main.c - the spawner's program, executed by the worker (spawner_start.c) in namespaces of its own where it
 * may have such. It hears what it is to do, makes what it was given its own, and serves.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/container/masked_paths.h"
#include "workers/sandbox/spawner/spawner.h"
#include "workers/sandbox/proto/wire.h"

static struct wire_message told;
static struct spawner_setup setup;

/* They are for us, and not for what is executed after us. Root was given all that there are: none that its worker has
 * not. */
static int own_rights(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2];
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capget, &header, rights) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        rights[i].permitted &= setup.has_namespaces ? ~0u : (uint32_t)(setup.rights >> 32 * i);
        rights[i].effective = rights[i].permitted;
        rights[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, rights) < 0 ? -errno : 0;
}

static bool take_setup(void)
{
    int *given[SPAWNER_GIVEN_MAX];
    if (told.head.verb != WIRE_SETUP || told.text_len < sizeof(setup))
        return false;
    memcpy(&setup, told.text, sizeof(setup));
    size_t count = spawner_list_given(&setup, given);
    for (size_t i = 0; i < count && count == told.fd_count; i++)
        *given[i] = take_fd(&told.fds[i]);
    return count == told.fd_count &&
           masked_paths_take(slice_of(told.text + sizeof(setup), told.text_len - sizeof(setup)));
}

/* By the system call: the memory that clocks are else read from is far from ours, and costs who is forked page tables
 * of its own. */
int clock_gettime(clockid_t clock, struct timespec *ret) { return (int)syscall(SYS_clock_gettime, clock, ret); }

/* Right behind our own memory where there is room: for the same reason. */
static void *near_ours(void)
{
    extern char end[]; /* the linker's */
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (void *)(((uintptr_t)end + page - 1) & ~(page - 1));
}

/* Who is forked from us has the memory; who is executed is given the descriptor. */
static int share_usages(void)
{
    setup.usages = usages_map(setup.usages_fd, near_ours());
    if (!setup.usages)
        return -errno;
    if (setup.tier != TIER_apptainer)
        close(take_fd(&setup.usages_fd));
    return 0;
}

static int begin(struct fail *fail)
{
    if (!take_setup())
        return fail_set(fail, -EPROTO, "the spawner's setup is none");
    int code = own_rights();
    if (code < 0)
        return fail_set(fail, code, "the spawner's rights: %s", strerror(-code));
    code = share_usages();
    return code < 0 ? fail_set(fail, code, "the spawner's usages: %s", strerror(-code)) : 0;
}

/* What a worker without them would leave to our own descriptors. */
static bool has_standard_files(void)
{
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    return fd >= 0 && close(fd) == 0;
}

/* Executing may have taken from us that we end with the worker; if that has ended, nobody tells us anything. */
int main(void)
{
    struct fail fail = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!has_standard_files() || fcntl(SPAWNER_WORKER_FD, F_SETFD, FD_CLOEXEC) < 0 ||
        wire_receive(SPAWNER_WORKER_FD, &told) != 1)
        return 1; /* who runs us by hand */
    if (begin(&fail) < 0) {
        struct wire_head head = {.verb = WIRE_DONE, .number = {fail.code}};
        wire_send(SPAWNER_WORKER_FD, &head, slice_from_str(fail.text), NULL, 0);
        return 1;
    }
    spawner_run(SPAWNER_WORKER_FD, &setup);
}
