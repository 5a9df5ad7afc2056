#include "workers/sandbox/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/sandbox/apptainer.h"
#include "workers/sandbox/cpus.h"
#include "workers/sandbox/init.h"
#include "workers/sandbox/plain_room.h"
#include "workers/sandbox/plan.h"
#include "workers/sandbox/proc.h"
#include "workers/sandbox/stock.h"
#include "workers/sandbox/tenant.h"
#include "workers/sandbox/way.h"
#include "workers/sandbox/wire.h"

enum {
    WATCH_EVERY_MS = 100,
    WATCH_SHARE = 10, /* at most a tenth of one core goes into watching */
    SWEEP_AFTER_MS = 20 /* nobody says when a group has become empty */
};

/* In pages that no child gets: each would keep a copy of those that are written after it was made. */
struct spawner_state {
    const struct room_way *way;
    int worker;       /* wire to the worker */
    int births[2];    /* new pid 1s write to [1] */
    int children;     /* signalfd of SIGCHLD */
    const struct spawner_setup *setup;
    struct fail stock; /* why there is none, and so no rooms */
    int host_proc; /* /proc, where there are no pid namespaces; -1 */
    struct cpus cpus;
    struct floors floors;
    struct spare spare; /* on no floor */
    uint32_t group;     /* the last one's number */
    size_t count;
    bool is_unswept; /* there may be groups that nobody is in */
    int64_t watch_at_ms;
    struct tenant_sight sight;
    struct tenant tenants[GAUGE_COUNT];
};

/* What children read of it: what we are asked for, and this. */
static struct wire_message asked;
static struct disks disks;
static struct init_setup init;

/* ---- a new one ---------------------------------------------------------------------- */

static int answer(const struct spawner_state *state, uint32_t id, int code, const char *sentence,
                  const int *fds, size_t fd_count)
{
    struct wire_head head = {.verb = WIRE_DONE, .id = id, .number = {code}};
    return wire_send(state->worker, &head, slice_from_str(sentence), fds, fd_count);
}

static int refuse(const struct spawner_state *state, uint32_t id, int code, const char *what)
{
    char sentence[256];
    snprintf(sentence, sizeof(sentence), "%s: %s", what, strerror(-code));
    return answer(state, id, code, sentence, NULL, 0);
}

/* Asks the fork server under a sandbox for a kernel in it. */
static int fork_kernel(struct spawner_state *state)
{
    int code = -ENOENT;
    for (size_t i = 0; i < state->count; i++) {
        const struct tenant *tenant = &state->tenants[i];
        struct room_plan limits = {
            .wanted = {.processes = tenant->limits.processes, .file_mib = tenant->file_mib}};
        if (tenant->id == (uint32_t)asked.head.number[0] && tenant->floor)
            code = floor_fork_kernel(tenant->floor, &limits, tenant->cgroup, asked.fds, asked.fd_count);
    }
    return answer(state, asked.head.id, code, code < 0 ? "there is no fork server" : "", NULL, 0);
}

/* On the floor of its image where it is to have one. */
static int take_spare(struct spawner_state *state, const struct room_plan *plan, struct spare *ret, struct floor **floor)
{
    *floor = floors_join(&state->floors, plan);
    if (*floor && ((*floor)->spare.pid > 0 || spare_make(&(*floor)->spare, *floor, &init, ++state->group) == 0)) {
        *ret = spare_take(&(*floor)->spare);
        return 0;
    }
    if (*floor)
        floors_leave(take_ptr(floor));
    int code = state->spare.pid > 0 ? 0 : spare_make(&state->spare, NULL, &init, ++state->group);
    if (code == 0)
        *ret = spare_take(&state->spare);
    return code;
}

/* Binds it to its CPUs and hands it the worker's order. */
static int instruct(const struct spare *spare, const cpu_set_t *cpus)
{
    if (CPU_COUNT(cpus) > 0 && sched_setaffinity(spare->pid, sizeof(*cpus), cpus) < 0)
        return -errno;
    return wire_send(spare->control, &asked.head, slice_of(asked.text, asked.text_len), NULL, 0);
}

static int settle(struct spawner_state *state, const struct room_plan *plan, struct spare *spare, struct floor *floor)
{
    struct tenant tenant = {.id = plan->id,
                            .pid = spare->pid,
                            .first = tier_has_root(plan->tier) ? 1 : spare->pid,
                            .proc = -1,
                            .disk = -1,
                            .segments = -1,
                            .file_mib = plan->wanted.file_mib,
                            .floor = floor,
                            .cgroup = spare->cgroup,
                            .group = spare->group,
                            .limits = {plan->wanted.memory_mib, plan->wanted.processes,
                                       state->setup->is_in_memory ? plan->wanted.disk_mib : 0},
                            .gauge = plan->gauge};
    cpus_choose(&state->cpus, plan->wanted.cpus, &tenant.cpus);
    int code = spare->cgroup < 0 ? 0 : cgroup_bound(spare->cgroup, &tenant.limits, NULL);
    if (code == 0)
        code = instruct(spare, &tenant.cpus);
    if (code < 0) {
        if (floor)
            floors_leave(floor);
        return code;
    }
    cpus_load(&state->cpus, &tenant.cpus, 1);
    state->tenants[state->count++] = tenant;
    return 0;
}

/* A spare one may have ended meanwhile, a new one has not. */
static int move_in(struct spawner_state *state, const struct room_plan *plan, struct spare *ret)
{
    int code = -EPIPE;
    for (int tries = 0; tries < 2 && code == -EPIPE; tries++) {
        struct floor *floor;
        code = take_spare(state, plan, ret, &floor);
        if (code == 0 && (code = settle(state, plan, ret, floor)) < 0)
            spare_drop(ret);
    }
    return code;
}

static int open_room(struct spawner_state *state)
{
    struct room_plan plan;
    struct spare spare;
    struct fail fail;
    char disk[DISKS_PATH_MAX];
    uint32_t id = asked.head.id;
    if (!plan_read(&plan, &asked, state->setup))
        return refuse(state, id, -EINVAL, "plan");
    if (state->count == GAUGE_COUNT)
        return refuse(state, id, -EAGAIN, "as many sandboxes as there can be");
    if (state->stock.code < 0)
        return answer(state, id, state->stock.code, state->stock.text, NULL, 0);
    if (disks_make(&disks, &plan, disk, &fail) < 0)
        return answer(state, id, fail.code, fail.text, NULL, 0);
    int code = move_in(state, &plan, &spare);
    if (code < 0) {
        disks_remove(&disks, id);
        return refuse(state, id, code, "cannot make a process or its namespaces (are those switched off on this machine?)");
    }
    int said = answer(state, id, 0, "", (int[]){spare.pidfd, spare.control, spare.cgroup}, spare.cgroup < 0 ? 2 : 3);
    close(spare.pidfd);
    close(spare.control);
    return said;
}

/* ---- one ahead ------------------------------------------------------------------------ */

/* fuse-overlayfs: a room's mounts come with its namespace, so that it is made after them. */
static bool makes_spares(const struct spawner_state *state)
{
    return tier_is_apart(state->setup->tier) && state->setup->tier != TIER_fuse_overlayfs;
}

/* Of those to make, one whose rooms are all built: a new one would hold up their building. */
static struct spare *find_wanted(struct spawner_state *state, const struct floor **ret_floor)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->tenants[i].proc < 0)
            return NULL;
    *ret_floor = NULL;
    if (state->spare.is_wanted)
        return &state->spare;
    for (struct floor *at = state->floors.each; at < state->floors.each + FLOORS_MAX; at++)
        if (at->pid > 0 && at->spare.is_wanted) {
            *ret_floor = at;
            return &at->spare;
        }
    return NULL;
}

/* With nothing else to do. Where none can be had, who asks next is told why. */
static void make_spare(struct spawner_state *state)
{
    const struct floor *floor;
    struct spare *spare = find_wanted(state, &floor);
    if (spare && spare_make(spare, floor, &init, ++state->group) < 0)
        spare->is_wanted = false;
}

/* ---- events ------------------------------------------------------------------------- */

/* The worker hears of the breach before the sandbox falls silent. */
static void end_for(struct spawner_state *state, struct tenant *tenant, enum limit_id limit)
{
    struct wire_head head = {.verb = WIRE_BREACH, .id = tenant->id};
    wire_send(state->worker, &head, slice_from_str(limit_get(limit)->name), NULL, 0);
    kill(tenant->pid, state->way->end_signal);
    cgroup_kill(tenant->cgroup);
    tenant->breached = true;
}

/* The keeper's word on who wrote too much. */
static void take_breach(struct spawner_state *state, const struct wire_head *head)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->tenants[i].id == head->id && !state->tenants[i].breached)
            end_for(state, &state->tenants[i], (enum limit_id)head->number[0]);
}

static void take_birth(struct spawner_state *state)
{
    if (wire_receive(state->births[0], &asked) <= 0)
        return;
    if (asked.head.verb == WIRE_BREACH)
        take_breach(state, &asked.head);
    for (size_t i = 0; i < state->count && asked.fd_count > 0; i++)
        if (state->tenants[i].id == asked.head.id && state->tenants[i].proc < 0) {
            state->tenants[i].proc = take_fd(&asked.fds[0]);
            if (asked.fd_count > 1)
                state->tenants[i].disk = take_fd(&asked.fds[1]);
            if (asked.fd_count > 2)
                state->tenants[i].segments = take_fd(&asked.fds[2]);
        }
    wire_close_fds(&asked);
}

/* The last look; a group in which something is still ending is removed later. */
static void leave_group(struct spawner_state *state, struct tenant *tenant)
{
    if (tenant->cgroup < 0)
        return;
    cgroup_look(tenant->cgroup, &tenant->limits, tenant->gauge);
    close(tenant->cgroup);
    state->is_unswept |= !cgroup_remove(state->setup->cgroups, tenant->group);
}

static void drop_tenant(struct spawner_state *state, struct tenant *tenant)
{
    leave_group(state, tenant);
    cpus_load(&state->cpus, &tenant->cpus, -1);
    cleanup_close(&tenant->proc);
    cleanup_close(&tenant->disk);
    cleanup_close(&tenant->segments);
    disks_remove(&disks, tenant->id);
    if (tenant->floor)
        floors_leave(tenant->floor);
    *tenant = state->tenants[--state->count];
}

/* What a first process that was killed has left to us, where no namespace ends it; how many there are. */
static size_t kill_strays(struct spawner_state *state)
{
    pid_t *pids = state->sight.inside;
    size_t count = proc_children(state->host_proc, getpid(), pids, PROC_SEEN_MAX), strays = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_known = pids[i] == disks.keeper_pid;
        for (size_t k = 0; k < state->count; k++)
            is_known |= state->tenants[k].pid == pids[i];
        strays += !is_known;
        if (!is_known)
            proc_signal_tree(state->host_proc, pids[i], 0, SIGKILL);
    }
    return strays;
}

static _Noreturn void end(struct spawner_state *state);

static void reap(struct spawner_state *state)
{
    struct signalfd_siginfo seen;
    pid_t pid;
    if (read(state->children, &seen, sizeof(seen)) < 0)
        return;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == disks.keeper_pid)
            end(state); /* nothing holds the disk limit any more: the worker sees us gone */
        size_t i = 0;
        while (i < state->count && state->tenants[i].pid != pid)
            i++;
        state->is_unswept |= i == state->count;
        if (i < state->count)
            drop_tenant(state, &state->tenants[i]);
        else if (pid == state->spare.pid)
            spare_drop(&state->spare);
        else
            floors_forget(&state->floors, pid);
    }
    if (state->host_proc >= 0)
        kill_strays(state);
}

/* ---- the watch ---------------------------------------------------------------------- */

static void watch(struct spawner_state *state)
{
    int64_t began_ms = clock_ms();
    if (!tier_has_root(state->setup->tier))
        proc_take_census(state->host_proc, &state->sight.host);
    for (size_t i = 0; i < state->count; i++) {
        struct tenant *tenant = &state->tenants[i];
        enum limit_id breach =
            tenant->proc < 0 || tenant->breached ? LIMIT_COUNT : tenant_look(tenant, &state->sight);
        if (breach != LIMIT_COUNT)
            end_for(state, tenant, breach);
    }
    int64_t pause_ms = WATCH_SHARE * (clock_ms() - began_ms);
    state->watch_at_ms = began_ms + (pause_ms > WATCH_EVERY_MS ? pause_ms : WATCH_EVERY_MS);
}

/* ---- its life ----------------------------------------------------------------------- */

static _Noreturn void end(struct spawner_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        kill(state->tenants[i].pid, state->way->end_signal);
    for (size_t i = 0; i < state->count; i++)
        while (waitpid(state->tenants[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
    while (state->host_proc >= 0 && kill_strays(state) > 0)
        waitpid(-1, NULL, 0);
    spare_drop(&state->spare);
    floors_end(&state->floors);
    disks_close(&disks);
    _exit(0);
}

/* Terminal signals are for the worker, which decides when we end. No handler is inherited: a pid 1
 * hears no signal from those inside but the ones that it handles. */
static void set_signals(struct spawner_state *state)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, NULL);
    state->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void prepare(struct spawner_state *state)
{
    struct rlimit files;
    prctl(PR_SET_NAME, "sluice-spawner");
    setsid();
    set_signals(state);
    room_prepare_filter();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    cpus_init(&state->cpus);
    if (state->children < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, state->births) < 0)
        _exit(1);
    init = (struct init_setup){
        .spawner = state->setup, .disks = &disks, .uid = geteuid(), .gid = getegid(), .births = state->births[1]};
}

static void serve_worker(struct spawner_state *state)
{
    int got = wire_receive(state->worker, &asked);
    if (got == 0)
        end(state);
    if (got < 0)
        return;
    int said = asked.head.verb == WIRE_ROOM     ? open_room(state)
               : asked.head.verb == WIRE_KERNEL ? fork_kernel(state)
                                                         : 0;
    if (said == -EPIPE)
        end(state);
    wire_close_fds(&asked);
}

static int until_next_ms(struct spawner_state *state)
{
    const struct floor *floor;
    if (makes_spares(state) && find_wanted(state, &floor))
        return 0;
    int most = state->is_unswept && cgroups_are_there(state->setup->cgroups) ? SWEEP_AFTER_MS : -1;
    if (state->count == 0)
        return most;
    int64_t left = state->watch_at_ms - clock_ms();
    return most >= 0 && left > most ? most : left > 0 ? (int)left : 0;
}

static void sweep_groups(struct spawner_state *state)
{
    size_t living = state->count + (state->spare.pid > 0);
    for (size_t i = 0; i < FLOORS_MAX; i++)
        living += state->floors.each[i].spare.pid > 0;
    state->is_unswept = cgroups_are_there(state->setup->cgroups) && cgroups_sweep_rooms(state->setup->cgroups) > living;
}

/* Who loses his parent is ours to end. */
static void prepare_plain(struct spawner_state *state)
{
    state->host_proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state->host_proc < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        fail_set(&state->stock, -errno, "the spawner: %s", strerror(errno));
}

static void prepare_rooms(struct spawner_state *state)
{
    const struct spawner_setup *setup = state->setup;
    if (setup->tier == TIER_landlock)
        plain_filter_prepare();
    if (!tier_is_apart(setup->tier))
        prepare_plain(state);
    else if (!setup->is_apart)
        return; /* clones fail, and say why */
    else
        stock_make(setup->scratch, setup->is_host_root, &state->stock);
    if (state->stock.code == 0)
        disks_open(&disks, setup->tier, setup->scratch, setup->disks, state->births[1], &state->stock);
    if (state->stock.code == 0 && setup->tier == TIER_apptainer)
        apptainer_prepare(disks.path, &state->stock);
}

static struct spawner_state *make_state(void)
{
    struct spawner_state *state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (state == MAP_FAILED || madvise(state, sizeof(*state), MADV_DONTFORK) < 0)
        _exit(1);
    return state;
}

_Noreturn void spawner_run(int socket, const struct spawner_setup *setup)
{
    struct spawner_state *state = make_state();
    state->worker = socket;
    state->setup = setup;
    state->way = room_way(setup->tier);
    disks.keeper = state->host_proc = -1;
    prepare(state);
    prepare_rooms(state);
    for (;;) {
        int keeper = disks_is_waiting(&disks) ? disks.keeper : -1;
        struct pollfd on[] = {{state->worker, POLLIN, 0},
                              {state->births[0], POLLIN, 0},
                              {state->children, POLLIN, 0},
                              {keeper, POLLOUT, 0}};
        bool is_idle = poll(on, 4, until_next_ms(state)) == 0;
        if (is_idle && makes_spares(state))
            make_spare(state);
        if (is_idle && state->is_unswept)
            sweep_groups(state);
        if (on[2].revents)
            reap(state);
        if (on[1].revents)
            take_birth(state);
        if (on[0].revents)
            serve_worker(state);
        if (on[3].revents)
            disks_send(&disks);
        if (state->count > 0 && clock_ms() >= state->watch_at_ms)
            watch(state);
    }
}
