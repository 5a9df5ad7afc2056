#include "workers/sandbox/spawner/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/container/confine.h"
#include "workers/sandbox/container/namespaces.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/container/seccomp/seccomp_rules.h"
#include "workers/sandbox/init/launch.h"
#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/container/high_fds.h"
#include "workers/sandbox/proto/wire.h"
#include "workers/inside/inside.h"

enum {
    SERVER_FD = 200, /* of the fork server */
    DISK_MIB = 64,
    SERVER_KIB_MAX = 1 << 20,
    SERVER_PROCESSES_MAX = 32, /* it and what it forks, for as long as that is no sandbox's */
    LOOK_EVERY_MS = 500,
};

static const char server_path[] = "/run/sluice/ipython_zygote.py";
static const char *const interpreters[] = {"/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3",
                                           "/opt/conda/bin/python3"};

/* ---- pid 1 of a zygote --------------------------------------------------------------- */

static int write_file(int dir, const char *name, struct slice bytes)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 || write(fd, bytes.data, bytes.len) != (ssize_t)bytes.len ? -1 : 0;
}

static int write_files(int dir)
{
    return write_file(dir, "ipython_driver.py", slice_of(ipython_driver_py, ipython_driver_py_len)) |
           write_file(dir, "ipython_zygote.py", slice_of(ipython_zygote_py, ipython_zygote_py_len)) |
           write_file(dir, "filter", container_filter());
}

static _Noreturn void become_server(int socket)
{
    struct fail fail;
    char number[16];
    snprintf(number, sizeof(number), "%d", SERVER_FD);
    setsid();
    launch_reset_signals();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    dup2(socket, SERVER_FD);
    close_range(3, SERVER_FD - 1, 0);
    close_range(SERVER_FD + 1, ~0U, 0);
    if (chdir("/workspace") < 0 || container_confine_server(&fail) < 0)
        _exit(1);
    for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++) {
        const char *argv[] = {interpreters[i], server_path, number, NULL};
        execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)launch_environment);
    }
    _exit(1);
}

/* A fork server that grows or multiplies ends; sandboxes' processes are in no tree of ours. */
static void look_after(int proc)
{
    static pid_t pids[SERVER_PROCESSES_MAX + 2];
    size_t count = proc_tree(proc, 1, pids, SERVER_PROCESSES_MAX + 2);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t kib, threads;
        total += pids[i] != 1 && proc_weigh(proc, pids[i], &kib, &threads) ? kib : 0;
    }
    if (count <= SERVER_PROCESSES_MAX && total <= SERVER_KIB_MAX)
        return;
    for (size_t i = 0; i < count; i++)
        if (pids[i] != 1)
            kill(pids[i], SIGKILL);
}

/* Never ends by itself: with it would all sandboxes of the image. */
static _Noreturn void zygote_main(const struct container_plan *plan, int socket)
{
    struct container container = {.proc = -1};
    struct fail fail;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "sluice-zygote");
    int server = fcntl(socket, F_DUPFD_CLOEXEC, 16);
    dup3(server, 3, O_CLOEXEC);
    close_range(4, ~0U, 0);
    int pids = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    wire_send(3, &(struct wire_head){0}, (struct slice){0}, &pids, pids >= 0);
    close(pids);
    bool is_ready = container_prepare(plan, &container, &fail) == 0 && container_build(plan, &container, &fail) == 0 &&
                    write_files(container.commands) == 0;
    if (is_ready && fork() == 0)
        become_server(3);
    close(3);
    container_confine_server(&fail);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (is_ready)
            look_after(container.proc);
        sigtimedwait(&child, NULL, &(struct timespec){0, LOOK_EVERY_MS * 1000000l});
    }
}

/* ---- in the spawner: zygotes --------------------------------------------------------- */

/* Which nobody can open any more once the zygote is not dumpable. */
static int receive_pids(int server)
{
    static struct wire_message said;
    if (wire_receive(server, &said) != 1 || said.fd_count != 1)
        return -EIO;
    return take_fd(&said.fds[0]);
}

static int open_zygote(const struct container_plan *like, struct zygote *ret)
{
    int ends[2], pidfd = -1;
    struct container_plan plan = {.image = like->image,
                                  .wanted = {.disk_mib = DISK_MIB, .processes = SERVER_PROCESSES_MAX},
                                  .scratch = like->scratch,
                                  .tier = like->tier,
                                  .is_host_root = like->is_host_root,
                                  .is_zygote = true};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    AUTO_CLOSE int its_end = ends[1];
    AUTO_CLOSE int server = ends[0];
    pid_t pid = namespaces_clone(NAMESPACES_ZYGOTE, -1, -1, &pidfd);
    if (pid == 0)
        zygote_main(&plan, its_end);
    if (pid < 0)
        return -errno;
    close(pidfd);
    cleanup_close(&its_end);
    its_end = -1;
    *ret = (struct zygote){.image = strdup(like->image), .pid = pid, .pids = high_fds_put(receive_pids(server))};
    fcntl(server, F_SETFL, O_NONBLOCK);
    ret->server = high_fds_put(take_fd(&server));
    return !ret->image ? -ENOMEM : ret->pids < 0 ? ret->pids : 0;
}

static void close_zygote(struct zygote *zygote)
{
    if (zygote->pid > 0)
        kill(zygote->pid, SIGKILL);
    prewarmed_drop(&zygote->prewarmed);
    cleanup_close(&zygote->pids);
    cleanup_close(&zygote->server);
    free(zygote->image);
    *zygote = (struct zygote){0};
}

/* An unused place, else that of the zygote which nobody has used for the longest time. */
static struct zygote *find_place(struct zygotes *zygotes)
{
    struct zygote *oldest = NULL;
    for (struct zygote *at = zygotes->each; at < zygotes->each + ZYGOTES_MAX; at++) {
        if (!at->image)
            return at;
        if (at->users == 0 && (!oldest || at->used_ms < oldest->used_ms))
            oldest = at;
    }
    if (oldest)
        close_zygote(oldest);
    return oldest;
}

/* The other tiers have files outside. */
static bool can_stand(const struct container_plan *plan)
{
    return plan->wanted.kernels && plan->tier == TIER_overlay_tmpfs;
}

struct zygote *zygotes_join(struct zygotes *zygotes, const struct container_plan *plan)
{
    struct zygote *zygote = NULL;
    if (!can_stand(plan))
        return NULL;
    for (struct zygote *at = zygotes->each; !zygote && at < zygotes->each + ZYGOTES_MAX; at++)
        if (at->image && at->pid > 0 && strcmp(at->image, plan->image) == 0)
            zygote = at;
    if (!zygote) {
        zygote = find_place(zygotes);
        if (zygote && open_zygote(plan, zygote) < 0) {
            if (zygote->pid > 0)
                close_zygote(zygote);
            zygote = NULL;
        }
    }
    if (zygote)
        zygote->users++;
    return zygote;
}

void zygotes_leave(struct zygote *zygote)
{
    zygote->users--;
    zygote->used_ms = clock_ms();
    if (zygote->users == 0 && (zygote->pid == 0 || zygote->server < 0))
        close_zygote(zygote); /* the next one has a fork server again */
}

void zygotes_end(struct zygotes *zygotes)
{
    for (struct zygote *at = zygotes->each; at < zygotes->each + ZYGOTES_MAX; at++)
        if (at->image)
            close_zygote(at);
}

void zygotes_forget(struct zygotes *zygotes, pid_t pid)
{
    for (struct zygote *at = zygotes->each; at < zygotes->each + ZYGOTES_MAX; at++)
        if (at->image && at->prewarmed.pid == pid) {
            prewarmed_drop(&at->prewarmed);
        } else if (at->image && at->pid == pid) {
            at->pid = 0;
            if (at->users == 0) /* else its sandboxes are gone too, and each will leave */
                close_zygote(at);
        }
}

/* ---- in the spawner: sandboxes and kernels ------------------------------------------ */

/* The pid as this process sees it, of one two pid namespaces down; -ESRCH: it has ended. */
static pid_t read_pid(int pidfd)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    char *list = strstr(text, "\nNSpid:");
    pid_t pids[8] = {0};
    size_t count = 0;
    if (!list)
        return -ESRCH;
    list += strlen("\nNSpid:");
    while (count < 8 && *list == '\t')
        pids[count++] = (pid_t)strtol(list, &list, 10);
    return count >= 3 ? pids[count - 3] : -ESRCH;
}

/* In a process in between, which has our descriptors: only from inside the zygote can a pid namespace on it be made. */
static pid_t step_in(int keeps, int cgroup, int tell)
{
    int pidfd = -1;
    pid_t pid = namespaces_clone(NAMESPACES_CONTAINER | NAMESPACES_SIBLING, keeps, cgroup, &pidfd);
    if (pid == 0)
        return 0;
    int said = pid < 0 ? -errno : pidfd;
    _exit(write(tell, &said, sizeof(said)) != sizeof(said));
}

/* What the step has said, once it has ended: a pidfd of ours, or negative errno. */
static int await_step(pid_t step, int told)
{
    int said = -EIO;
    while (waitpid(step, NULL, 0) < 0 && errno == EINTR)
        ;
    return read(told, &said, sizeof(said)) == sizeof(said) ? said : -EIO;
}

pid_t zygote_clone(const struct zygote *zygote, int keeps, int cgroup, int *ret_pidfd)
{
    int ends[2];
    AUTO_CLOSE int home = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (home < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    AUTO_CLOSE int tell = ends[1];
    AUTO_CLOSE int told = ends[0];
    if (setns(zygote->pids, CLONE_NEWPID) < 0)
        return -errno;
    pid_t step = cgroup_clone(&(struct clone_args){.flags = CLONE_FILES, .exit_signal = SIGCHLD}, -1);
    if (step == 0)
        return step_in(keeps, cgroup, tell);
    int code = step < 0 ? -errno : 0;
    if (setns(home, CLONE_NEWPID) < 0)
        abort(); /* our own namespace: it cannot fail, and all that follow would be lost */
    AUTO_CLOSE int pidfd = code < 0 ? code : await_step(step, told);
    pid_t pid = pidfd < 0 ? pidfd : read_pid(pidfd);
    if (pid > 0)
        *ret_pidfd = take_fd(&pidfd);
    return pid;
}

int zygote_fork_kernel(struct zygote *zygote, const struct container_plan *limits, int cgroup, const int *fds,
                       size_t fd_count)
{
    char text[512];
    struct container_limits most = container_limits(limits);
    int len = snprintf(text, sizeof(text), "[");
    for (size_t i = 0; i < most.count; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s[%d,%llu]", i ? "," : "", most.each[i].what,
                        (unsigned long long)most.each[i].most);
    len += snprintf(text + len, sizeof(text) - (size_t)len, "]");
    AUTO_CLOSE int door = cgroup < 0 ? -1 : cgroup_open_door(cgroup);
    struct wire_head head = {.number = {door >= 0}};
    int all[WIRE_FDS_MAX];
    if (fd_count >= WIRE_FDS_MAX || (cgroup >= 0 && door < 0))
        return -ENOENT;
    memcpy(all, fds, fd_count * sizeof(*fds));
    all[fd_count] = door; /* the last, where there is one: the fork goes through it into the sandbox's group */
    int sent = zygote->server < 0
                   ? -EPIPE
                   : wire_send(zygote->server, &head, slice_of(text, (size_t)len), all, fd_count + (door >= 0));
    if (sent == 0)
        return 0;
    if (sent != -EAGAIN) { /* else it is stuck, perhaps only now */
        cleanup_close(&zygote->server);
        zygote->server = -1;
    }
    return -ENOENT;
}
