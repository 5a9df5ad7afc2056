#include "workers/sandbox/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/cleanup.h"
#include "workers/sandbox/gauge.h"
#include "workers/sandbox/files.h"
#include "workers/sandbox/launch.h"
#include "workers/sandbox/pack.h"
#include "workers/sandbox/proc.h"
#include "workers/sandbox/starts.h"
#include "workers/sandbox/wire.h"

enum {
    KILL_PASSES = 64,
    KILL_PAUSE_US = 500,
};

struct init {
    int control, children;
    struct room_plan plan;
    struct room room;
    struct starts starts; /* whose ends the worker hears of */
    struct wire_message message;
};

static void tell(const struct init *init, const struct wire_head *head, const char *text,
                 const int *fds, size_t fd_count)
{
    if (wire_send(init->control, head, slice_from_str(text), fds, fd_count) == -EPIPE)
        _exit(0); /* nobody is there any more */
}

static void answer(const struct init *init, int64_t result, const int *fds, size_t fd_count)
{
    struct wire_head head = {WIRE_DONE, init->message.head.id, {0, result}};
    tell(init, &head, "", fds, fd_count);
}

static void refuse(const struct init *init, const struct fail *fail)
{
    struct wire_head head = {WIRE_DONE, init->message.head.id, {fail->code}};
    tell(init, &head, fail->text, NULL, 0);
}

/* ---- what they use ------------------------------------------------------------------ */

/* What has ended, and what it left on the disk. */
static void see_usage(const struct init *init)
{
    struct rusage ended;
    struct gauge *gauge = init->plan.gauge;
    if (getrusage(RUSAGE_CHILDREN, &ended) == 0) {
        atomic_store(&gauge->cpu_us,
                     (uint64_t)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1000000 +
                         (uint64_t)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec));
        gauge_peak(&gauge->memory_kib, (uint64_t)ended.ru_maxrss);
    }
    gauge_see_disk(gauge, init->room.upper);
}

/* ---- beginnings ----------------------------------------------------------------------- */

/* Tells what became of one under way, once that is known. False: it came to nothing and is dropped. */
static bool settle(struct init *init, struct start *start)
{
    struct fail fail = {0};
    int code = start->report < 0 ? 0 : starts_look(start, &fail);
    if (code == 0)
        return true;
    struct wire_head head = {WIRE_DONE, start->id, {code < 0 ? code : 0, start->pid}};
    if (code < 0)
        starts_drop(&init->starts, start);
    tell(init, &head, fail.text, NULL, 0);
    return code > 0;
}

static void settle_all(struct init *init)
{
    for (size_t i = init->starts.count; i-- > 0;)
        settle(init, &init->starts.each[i]);
}

/* ---- ends --------------------------------------------------------------------------- */

/* Never before the worker knows who that is. */
static void report_end(struct init *init, pid_t pid, int status)
{
    int said = WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
    struct start *start = starts_find(&init->starts, pid);
    if (!start || !settle(init, start))
        return;
    struct wire_head head = {WIRE_EXITED, start->id, {said}};
    starts_drop(&init->starts, start);
    tell(init, &head, "", NULL, 0);
}

/* Buries the dead, ours and the orphans; with `all`, waits until none is left. */
static void reap(struct init *init, bool all)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, all ? 0 : WNOHANG)) > 0) {
        see_usage(init);
        report_end(init, pid, status);
    }
}

/* One signal to every living process but ours and the spared; how many there were. */
static size_t kill_once(const struct init *init, const struct proc_spared *spared)
{
    static pid_t pids[PROC_SEEN_MAX];
    size_t count = proc_others(init->room.proc, spared, pids, PROC_SEEN_MAX);
    for (size_t i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
    return count;
}

/* False when new ones appear as fast as they are killed (the spared one makes them). */
static bool kill_but(struct init *init, const struct proc_spared *spared)
{
    for (int pass = 0; pass < KILL_PASSES; pass++) {
        size_t living = kill_once(init, spared);
        reap(init, false);
        if (living == 0)
            return true;
        nanosleep(&(struct timespec){0, KILL_PAUSE_US * 1000}, NULL);
    }
    return false;
}

static bool kill_others(struct init *init, pid_t spared)
{
    if (spared != 0)
        return kill_but(init, &(struct proc_spared){.alone = spared});
    kill(-1, SIGKILL);
    reap(init, true);
    return true;
}

/* ---- services ----------------------------------------------------------------------- */

static void serve_start(struct init *init)
{
    struct fail fail = {0};
    int report = -1;
    pid_t pid = starts_check(&init->starts, &fail);
    if (pid == 0)
        pid = launch(&init->plan, &init->room, &init->message, &report, &fail);
    if (pid < 0)
        refuse(init, &fail);
    else
        starts_add(&init->starts, pid, init->message.head.id, report); /* settle answers */
}

static void answer_killed(struct init *init, bool is_done)
{
    struct fail fail = {0};
    if (is_done) {
        answer(init, 0, NULL, 0);
        return;
    }
    fail_set(&fail, -EBUSY, "new processes keep appearing");
    refuse(init, &fail);
}

static void serve_kill_all(struct init *init)
{
    answer_killed(init, kill_others(init, (pid_t)init->message.head.number[0]));
}

/* What was started by other requests stays, with its descendants. */
static void serve_kill_command(struct init *init)
{
    const pid_t shell = (pid_t)init->message.head.number[0];
    const uint64_t before = (uint64_t)init->message.head.number[1];
    pid_t roots[STARTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < init->starts.count; i++)
        if (init->starts.each[i].pid != shell)
            roots[count++] = init->starts.each[i].pid;
    struct proc_spared spared = {before > 0 ? shell : 0, roots, count, before};
    answer_killed(init, kill_but(init, &spared));
}

/* Frozen first, they cannot leave children behind for the next kill to miss. */
static void signal_tree(const struct init *init, pid_t root, int signal)
{
    static pid_t pids[PROC_SEEN_MAX];
    size_t count = proc_tree(init->room.proc, root, pids, PROC_SEEN_MAX), frozen = 0;
    for (int pass = 0; signal == SIGKILL && frozen < count && pass < KILL_PASSES; pass++) {
        for (size_t i = 0; i < count; i++)
            kill(pids[i], SIGSTOP);
        frozen = count;
        count = proc_tree(init->room.proc, root, pids, PROC_SEEN_MAX);
    }
    for (size_t i = 0; i < count; i++)
        kill(pids[i], signal);
}

static void serve_signal(struct init *init)
{
    pid_t root = (pid_t)init->message.head.number[0];
    if (root > 1)
        signal_tree(init, root, (int)init->message.head.number[1]);
    answer(init, 0, NULL, 0);
}

/* Somebody else's child that is ours by now: its parent in between has ended. */
static void serve_adopt(struct init *init)
{
    struct fail fail = {0};
    pid_t pid = (pid_t)init->message.head.number[0];
    if (starts_check(&init->starts, NULL) < 0 || pid <= 1 || waitpid(pid, NULL, WNOHANG) != 0) {
        fail_set(&fail, -ESRCH, "process %d is not there", pid);
        refuse(init, &fail);
        return;
    }
    starts_add(&init->starts, pid, init->message.head.id, -1);
    answer(init, pid, NULL, 0);
}

/* The path as it is inside; relative ones are in /workspace. */
static bool read_path(const struct init *init, size_t *from, char path[PATH_MAX], struct fail *fail)
{
    const char *asked = wire_next_string(&init->message, from);
    int len = asked ? snprintf(path, PATH_MAX, "%s%s", *asked == '/' ? "" : "/workspace/", asked)
                    : PATH_MAX;
    if (len < PATH_MAX)
        return true;
    fail_set(fail, -ENAMETOOLONG, "a path of %d bytes", len);
    return false;
}

static void serve_file(struct init *init)
{
    struct fail fail = {0};
    char path[PATH_MAX];
    size_t from = 0;
    const uint64_t flags = (uint64_t)init->message.head.number[0];
    const bool as_user = init->message.head.number[2];
    AUTO_CLOSE int fd = -1;
    if (read_path(init, &from, path, &fail))
        fd = files_open(path, flags, (mode_t)init->message.head.number[1], as_user, &fail);
    if (fd < 0)
        refuse(init, &fail);
    else
        answer(init, 0, &fd, 1);
}

static void serve_rename(struct init *init)
{
    struct fail fail = {0};
    char from_path[PATH_MAX], to_path[PATH_MAX];
    size_t from = 0;
    bool has_to = init->message.head.number[0];
    if (read_path(init, &from, from_path, &fail) &&
        (!has_to || read_path(init, &from, to_path, &fail)))
        files_rename(from_path, has_to ? to_path : NULL, &fail);
    if (fail.code < 0)
        refuse(init, &fail);
    else
        answer(init, 0, NULL, 0);
}

static void serve_state(struct init *init)
{
    struct fail fail = {0};
    struct stat it;
    const int64_t what = init->message.head.number[0], mode = init->message.head.number[1];
    int fd = init->message.fd_count == 1 ? init->message.fds[0] : -1;
    if (what == STATE_CHANGE_MODE && fchmod(fd, (mode_t)mode & 07777) < 0)
        fail_set(&fail, -errno, "%s", strerror(errno));
    else if (fstat(fd, &it) < 0)
        fail_set(&fail, -errno, "%s", strerror(errno));
    if (fail.code < 0)
        refuse(init, &fail);
    else
        answer(init, what == STATE_SIZE ? it.st_size : what == STATE_LINKS ? (int64_t)it.st_nlink : it.st_mode,
               NULL, 0);
}

static void serve_terminal(struct init *init)
{
    struct fail fail = {0};
    int number = 0;
    AUTO_CLOSE int fd = files_open_terminal(&number, &fail);
    if (fd < 0)
        refuse(init, &fail);
    else
        answer(init, number, &fd, 1);
}

static void serve_inside(struct init *init)
{
    static const char *const names[] = {"user", "pid", "net", "ipc", "uts", "cgroup", "mnt"};
    enum { COUNT = sizeof(names) / sizeof(*names) };
    struct fail fail = {0};
    int fds[COUNT];
    size_t count = 0;
    while (count < COUNT) {
        char path[32];
        snprintf(path, sizeof(path), "self/ns/%s", names[count]);
        fds[count] = openat(init->room.proc, path, O_RDONLY | O_CLOEXEC);
        if (fds[count] < 0)
            break;
        count++;
    }
    if (count == COUNT) {
        answer(init, 0, fds, COUNT);
    } else {
        fail_set(&fail, -errno, "%s: %s", names[count], strerror(errno));
        refuse(init, &fail);
    }
    while (count > 0)
        close(fds[--count]);
}

static void serve_pack(struct init *init)
{
    struct fail fail = {0};
    uint64_t bytes = 0;
    if (init->message.fd_count != 1)
        fail_set(&fail, -EINVAL, "no file to pack into");
    else {
        kill_others(init, 0);
        pack_upper(init->room.upper, init->message.fds[0],
                   init->plan.tier == TIER_fuse_overlayfs, &bytes, &fail);
    }
    if (fail.code < 0)
        refuse(init, &fail);
    else
        answer(init, (int64_t)bytes, NULL, 0);
}

static const struct {
    enum wire_verb verb;
    void (*serve)(struct init *init);
} services[] = {
    {WIRE_START, serve_start},
    {WIRE_KILL_ALL, serve_kill_all},
    {WIRE_KILL_COMMAND, serve_kill_command},
    {WIRE_SIGNAL, serve_signal},
    {WIRE_ADOPT, serve_adopt},
    {WIRE_INSIDE, serve_inside},
    {WIRE_FILE, serve_file},
    {WIRE_PACK, serve_pack},
    {WIRE_RENAME, serve_rename},
    {WIRE_STATE, serve_state},
    {WIRE_TERMINAL, serve_terminal},
};

static void serve(struct init *init)
{
    int got = wire_receive(init->control, &init->message);
    if (got == 0)
        _exit(0);
    if (got < 0)
        return;
    if (init->message.is_short) {
        struct fail fail = {.code = -EMFILE, .text = "pid 1 has too many open files"};
        refuse(init, &fail);
        return;
    }
    for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++)
        if (services[i].verb == init->message.head.verb)
            services[i].serve(init);
    wire_close_fds(&init->message);
}

/* ---- its life ----------------------------------------------------------------------- */

/* Leaves descriptors 0 to 2, control as 3 and births as 4. */
static void keep_two(int *control, int *births)
{
    int high_control = fcntl(*control, F_DUPFD_CLOEXEC, 16);
    int high_births = fcntl(*births, F_DUPFD_CLOEXEC, 16);
    if (dup3(high_control, 3, O_CLOEXEC) < 0 || dup3(high_births, 4, O_CLOEXEC) < 0)
        _exit(1);
    close_range(5, ~0U, 0);
    *control = 3;
    *births = 4;
}

/* Also the proof that the spawner still lives: it may have died before the prctl. */
static void say_born(const struct init *init, int births)
{
    struct wire_head head = {.verb = WIRE_BORN, .id = init->plan.id};
    AUTO_CLOSE int proc = openat(init->room.proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int segments = openat(init->room.proc, "sysvipc/shm", O_RDONLY | O_CLOEXEC);
    int fds[] = {proc, init->room.upper, segments}; /* the others of their own: both sides seek */
    if (proc < 0 || wire_send(births, &head, (struct slice){0}, fds, segments < 0 ? 2 : 3) < 0)
        _exit(1);
    close(births);
}

/* Descriptors for the worker: the tools' directories, then the listeners. */
static int make_listeners(struct init *init, int *fds, struct fail *fail)
{
    fds[0] = init->room.commands;
    fds[1] = init->room.outputs;
    for (size_t i = 0; i < init->plan.listener_count; i++) {
        fds[2 + i] = listener_make(&init->plan.listeners[i], init->room.commands,
                                   init->room.variables[i], fail);
        if (fds[2 + i] < 0)
            return fail->code;
    }
    return listener_tell(init->room.commands, init->room.variables, init->plan.listener_count, fail);
}

static int become_ready(struct init *init, int births, int *fds, struct fail *fail)
{
    int code = room_bind_cpus(&init->plan, fail);
    if (code == 0)
        code = room_build(&init->plan, &init->room, fail);
    if (code < 0)
        return code;
    code = make_listeners(init, fds, fail);
    if (code < 0)
        return code;
    gauge_start_disk(init->plan.gauge, init->room.upper);
    say_born(init, births);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    init->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (init->children < 0)
        return fail_set(fail, -errno, "signalfd: %s", strerror(errno));
    return room_confine(&init->plan, fail);
}

static _Noreturn void live(struct init *init)
{
    for (;;) {
        struct pollfd on[2 + STARTS_MAX] = {{init->control, POLLIN, 0}, {init->children, POLLIN, 0}};
        struct signalfd_siginfo seen;
        size_t under_way = starts_poll(&init->starts, on + 2);
        poll(on, 2 + under_way, starts_left_ms(&init->starts));
        settle_all(init);
        if (on[1].revents && read(init->children, &seen, sizeof(seen)) > 0)
            reap(init, false);
        if (on[0].revents)
            serve(init);
    }
}

_Noreturn void init_main(const struct room_plan *plan, int control, int births)
{
    static struct init init;
    struct fail fail = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "sluice-init");
    keep_two(&control, &births);
    init.control = control;
    init.plan = *plan;
    init.message.head.id = WIRE_READY_ID;
    int fds[2 + LISTENERS_MAX];
    if (become_ready(&init, births, fds, &fail) < 0) {
        refuse(&init, &fail);
        _exit(1);
    }
    answer(&init, 0, fds, 2 + init.plan.listener_count);
    for (size_t i = 0; i < init.plan.listener_count; i++)
        close(fds[2 + i]);
    live(&init);
}
