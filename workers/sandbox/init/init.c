#include "workers/sandbox/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/init/init_answer.h"
#include "workers/sandbox/init/init_ends.h"
#include "workers/sandbox/init/init_services.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/init/init_inside.h"
#include "workers/sandbox/init/listener_make.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/init/socket_memory.h"

enum { STACK_PAGES = 16 };

/* ---- to and from the worker --------------------------------------------------------- */

static void serve(struct init *init)
{
    int got = wire_receive(init->control, &init->message);
    if (got == 0)
        init_end(init);
    if (got < 0)
        return;
    if (init->message.is_short) {
        struct fail fail = {.code = -EMFILE, .text = "pid 1 has too many open files"};
        init_refuse(init, &fail);
        return;
    }
    init_serve(init);
    wire_close_fds(&init->message);
}

/* ---- its life ----------------------------------------------------------------------- */

/* Leaves descriptors 0 to 2, and those that are ours from 3 on (plan.h). */
static void keep_ours(struct init *init, int *control, int *births)
{
    int *ours[2 + CONTAINER_BROUGHT_MAX] = {control, births};
    size_t count = 2;
    for (size_t i = 0; i < init->plan.brought_count; i++)
        ours[count++] = &init->plan.brought[i];
    for (size_t i = 0; i < count; i++) /* out of each other's way */
        *ours[i] = fcntl(*ours[i], F_DUPFD_CLOEXEC, 16);
    for (size_t i = 0; i < count; i++) {
        if (dup3(*ours[i], CONTAINER_CONTROL_FD + (int)i, O_CLOEXEC) < 0)
            _exit(1);
        *ours[i] = CONTAINER_CONTROL_FD + (int)i;
    }
    close_range(CONTAINER_CONTROL_FD + (unsigned)count, ~0U, 0);
}

static void open_own(const struct init *init, int own[OWN_COUNT])
{
    const int proc = init->container.proc;
    const enum tier tier = init->plan.tier;
    own[OWN_PROC] = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own[OWN_DISK] = init->container.disk < 0 ? -1 : fcntl(init->container.disk, F_DUPFD_CLOEXEC, 0);
    own[OWN_SEGMENTS] = openat(proc, "sysvipc/shm", O_RDONLY | O_CLOEXEC);
    own[OWN_OUTPUTS] = tier_has_namespaces(tier) ? fcntl(init->container.outputs, F_DUPFD_CLOEXEC, 0) : -1;
    own[OWN_SOCKETS] = tier_has_root(tier) ? openat(proc, "net/sockstat", O_RDONLY | O_CLOEXEC) : -1;
    own[OWN_ASK] = tier_has_root(tier) ? socket_memory_open() : -1;
}

/* Also the proof that the spawner still lives: it may have died before the prctl. */
static void say_born(const struct init *init, int births)
{
    struct wire_head head = {.verb = WIRE_BORN, .id = init->plan.id};
    int own[OWN_COUNT], fds[OWN_COUNT];
    size_t count = 0;
    open_own(init, own);
    for (unsigned i = 0; i < OWN_COUNT; i++)
        if (own[i] >= 0) {
            head.number[0] |= 1 << i;
            fds[count++] = own[i];
        }
    if (own[OWN_PROC] < 0 || wire_send(births, &head, (struct slice){0}, fds, count) < 0)
        _exit(1);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    close(births);
}

/* Descriptors for the worker: the tools' directories, then the listeners. */
static int make_listeners(struct init *init, int *fds, struct fail *fail)
{
    fds[0] = init->container.commands;
    fds[1] = init->container.outputs;
    for (size_t i = 0; i < init->plan.wanted.listener_count; i++) {
        fds[2 + i] = listener_make(&init->plan.wanted.listeners[i], init->container.commands,
                                   init->container.variables[i], fail);
        if (fds[2 + i] < 0)
            return fail->code;
    }
    return listener_tell(init->container.commands, init->container.variables, init->plan.wanted.listener_count, fail);
}

/* Before it is confined: a signal that comes earlier waits. */
static int listen_to_signals(struct init *init, struct fail *fail)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (init->backend->end_signal != SIGKILL) /* or those inside could end us with it */
        sigaddset(&set, init->backend->end_signal);
    sigprocmask(SIG_SETMASK, &set, NULL);
    init->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return init->signals < 0 ? fail_set(fail, -errno, "signalfd: %s", strerror(errno)) : 0;
}

/* Whatever needs no plan but what all plans share. */
static int prepare(struct init *init, struct fail *fail)
{
    int code = listen_to_signals(init, fail);
    return code == 0 && init->backend->prepare ? init->backend->prepare(&init->plan, &init->container, fail) : code;
}

/* Its strings stay where they were received: they are there until the container is. */
static void await_plan(struct init *init, const struct init_setup *setup)
{
    static char disk[PLAN_DISK_PATH_MAX];
    const struct container_plan shared = init->plan;
    if (wire_receive(init->control, &init->message) != 1 || !plan_read(&init->plan, &init->message, setup->spawner))
        _exit(0); /* the spawner is gone */
    init->plan.disk = plan_disk_path(setup->disks, init->plan.id, disk);
    init->plan.uid = shared.uid;
    init->plan.gid = shared.gid;
    memcpy(init->plan.brought, shared.brought, sizeof(shared.brought));
    init->plan.brought_count = shared.brought_count;
}

static int become_ready(struct init *init, int births, int *fds, struct fail *fail)
{
    int code = init->backend->build(&init->plan, &init->container, fail);
    if (code < 0)
        return code;
    code = make_listeners(init, fds, fail);
    if (code < 0)
        return code;
    usage_start_disk(init->plan.usage, init->container.disk);
    say_born(init, births);
    return init->backend->confine(&init->plan, fail);
}

/* True when the signal is ours to end at; where the kernel ends us there is none. */
static bool read_signals(struct init *init)
{
    struct signalfd_siginfo seen;
    bool is_end = false;
    while (read(init->signals, &seen, sizeof(seen)) > 0)
        is_end |= (int)seen.ssi_signo == init->backend->end_signal;
    init_reap(init);
    return is_end;
}

/* What building the container took of it, which waiting does not: a sandbox lives longer than it is built. */
static void forget_stack(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), here = (uintptr_t)__builtin_frame_address(0);
    madvise((void *)((here & ~(page - 1)) - STACK_PAGES * page), (STACK_PAGES - 1) * page, MADV_DONTNEED);
}

static _Noreturn void live(struct init *init)
{
    struct pollfd *on = init->polled;
    for (;;) {
        on[0] = (struct pollfd){init->control, POLLIN, 0};
        on[1] = (struct pollfd){init->signals, POLLIN, 0};
        size_t under_way = execs_poll(&init->execs, on + 2);
        struct pollfd *asking = on + 2 + under_way;
        size_t asking_count = seccomp_notify_poll(&init->container.seccomp_notify, asking, NOTIFIERS_MAX);
        poll(on, 2 + under_way + asking_count, execs_left_ms(&init->execs));
        init_settle(init);
        if (on[1].revents && read_signals(init))
            init_end(init);
        seccomp_notify_serve(&init->container.seccomp_notify, asking, asking_count);
        if (on[0].revents)
            serve(init);
    }
}

static void begin(struct init *init, const struct container_plan *plan, int *control, int *births)
{
    init->backend = sandbox_backend(plan->tier);
    init->pid = getpid();
    prctl(PR_SET_PDEATHSIG, init->backend->end_signal);
    prctl(PR_SET_NAME, "sluice-init");
    init->plan = *plan;
    keep_ours(init, control, births);
    init->control = *control;
}

static _Noreturn void go_on(struct init *init, int births, int code, struct fail *fail)
{
    init->message.head.id = WIRE_READY_ID;
    int fds[2 + LISTENERS_MAX];
    if (code < 0 || become_ready(init, births, fds, fail) < 0) {
        init_refuse(init, fail);
        _exit(1);
    }
    init_answer(init, 0, fds, 2 + init->plan.wanted.listener_count);
    for (size_t i = 0; i < init->plan.wanted.listener_count; i++)
        close(fds[2 + i]);
    forget_stack();
    live(init);
}

static _Alignas(4096) struct init the_one; /* in as few pages as can be: there are as many as sandboxes */

_Noreturn void init_main(const struct container_plan *plan, int control, int births)
{
    struct fail fail = {0};
    begin(&the_one, plan, &control, &births);
    go_on(&the_one, births, prepare(&the_one, &fail), &fail);
}

_Noreturn void init_wait(const struct init_setup *setup, int control)
{
    const struct spawner_setup *spawner = setup->spawner;
    const struct container_plan shared = {.tier = spawner->tier,
                                          .scratch = spawner->scratch,
                                          .uid = setup->uid,
                                          .gid = setup->gid,
                                          .wanted = {.uid = setup->inside_uid, .gid = setup->inside_gid},
                                          .brought = {spawner->usages_fd},
                                          .brought_count = spawner->usages_fd >= 0,
                                          .is_host_root = spawner->is_host_root};
    struct fail fail = {0};
    int births = setup->births;
    begin(&the_one, &shared, &control, &births);
    int code = prepare(&the_one, &fail);
    await_plan(&the_one, setup);
    go_on(&the_one, births, code, &fail);
}
