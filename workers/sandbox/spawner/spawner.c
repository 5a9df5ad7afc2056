#include "workers/sandbox/spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "workers/sandbox/backends/apptainer/apptainer_container.h"
#include "workers/sandbox/backends/landlock/landlock_container.h"
#include "workers/sandbox/backends/landlock/landlock_seccomp.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/container/seccomp/seccomp_root.h"
#include "workers/sandbox/container/seccomp/seccomp_rules.h"
#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/container/high_fds.h"
#include "workers/sandbox/spawner/spawner_containers.h"
#include "workers/sandbox/spawner/spawner_inside.h"
#include "workers/sandbox/spawner/base_mounts.h"

enum {
    WATCH_EVERY_MS = 100,
    WATCH_SHARE = 10,   /* at most a tenth of one core goes into watching */
    SWEEP_AFTER_MS = 20 /* nobody says when a group has become empty */
};

struct wire_message spawner_shown;
struct disks spawner_disks;
struct init_setup spawner_init;

/* ---- one ahead ------------------------------------------------------------------------ */

/* fuse-overlayfs: a container's mounts come with its namespace, so that it is made after them. */
static bool makes_prewarmed(const struct spawner_state *state)
{
    return tier_has_namespaces(state->setup->tier) && state->setup->tier != TIER_fuse_overlayfs;
}

/* Of those to make, one whose containers are all built: a new one would hold up their building. */
static struct prewarmed *find_wanted(struct spawner_state *state, const struct zygote **ret_zygote)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->entries[i].own[OWN_PROC] < 0)
            return NULL;
    *ret_zygote = NULL;
    if (state->prewarmed.is_wanted)
        return &state->prewarmed;
    for (struct zygote *at = state->zygotes.each; at < state->zygotes.each + ZYGOTES_MAX; at++)
        if (at->pid > 0 && at->prewarmed.is_wanted) {
            *ret_zygote = at;
            return &at->prewarmed;
        }
    return NULL;
}

/* With nothing else to do. Where none can be had, who asks next is told why. */
static void make_prewarmed(struct spawner_state *state)
{
    const struct zygote *zygote;
    struct prewarmed *prewarmed = find_wanted(state, &zygote);
    if (prewarmed && prewarmed_make(prewarmed, zygote, &spawner_init, ++state->group) < 0)
        prewarmed->is_wanted = false;
}

/* ---- events ------------------------------------------------------------------------- */

/* The worker hears of the breach before the sandbox falls silent. */
static void end_for(struct spawner_state *state, struct sandbox_entry *entry, enum limit_id limit)
{
    struct wire_head head = {.verb = WIRE_BREACH, .id = entry->id};
    wire_send(state->worker, &head, slice_from_str(limit_get(limit)->name), NULL, 0);
    kill(entry->pid, state->backend->end_signal);
    cgroup_kill(entry->cgroup);
    entry->breached = true;
}

/* The quota daemon's word on who wrote too much. */
static void take_breach(struct spawner_state *state, const struct wire_head *head)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->entries[i].id == head->id && !state->entries[i].breached)
            end_for(state, &state->entries[i], (enum limit_id)head->number[0]);
}

/* From now on it has descriptors of its own. */
static void let_live(const struct spawner_state *state, struct sandbox_entry *entry, struct wire_message *said)
{
    size_t next = 0;
    for (unsigned i = 0; i < OWN_COUNT && next < said->fd_count; i++)
        if (said->head.number[0] >> i & 1)
            entry->own[i] = high_fds_put(take_fd(&said->fds[next++]));
    cleanup_close(&entry->its_end);
    entry->its_end = -1;
    if (entry->server < 0)
        kill(entry->pid, state->backend->end_signal);
}

static void take_birth(struct spawner_state *state)
{
    if (wire_receive(state->births[0], &state->asked) <= 0)
        return;
    if (state->asked.head.verb == WIRE_BREACH)
        take_breach(state, &state->asked.head);
    for (size_t i = 0; i < state->count && state->asked.fd_count > 0; i++)
        if (state->entries[i].id == state->asked.head.id && state->entries[i].own[OWN_PROC] < 0)
            let_live(state, &state->entries[i], &state->asked);
    wire_close_fds(&state->asked);
}

/* The last look; a group in which something is still ending is removed later. */
static void leave_group(struct spawner_state *state, struct sandbox_entry *entry)
{
    if (entry->cgroup < 0)
        return;
    cgroup_look(entry->cgroup, &entry->limits, entry->usage);
    close(entry->cgroup);
    state->is_unswept |= !cgroup_remove(&state->setup->cgroups, entry->group);
}

static void drop_entry(struct spawner_state *state, struct sandbox_entry *entry)
{
    leave_group(state, entry);
    cpus_load(&state->cpus, &entry->cpus, -1);
    for (unsigned i = 0; i < OWN_COUNT; i++)
        cleanup_close(&entry->own[i]);
    cleanup_close(&entry->its_end);
    disks_remove(&spawner_disks, entry->id);
    if (entry->zygote)
        zygotes_leave(entry->zygote);
    *entry = state->entries[--state->count];
}

/* What a first process that was killed has left to us, where no namespace ends it; how many there are. */
static size_t kill_strays(struct spawner_state *state)
{
    pid_t *pids = state->sight.inside;
    size_t count = proc_children(state->host_proc, getpid(), pids, PROC_SEEN_MAX), strays = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_known = pids[i] == spawner_disks.quota_pid;
        for (size_t k = 0; k < state->count; k++)
            is_known |= state->entries[k].pid == pids[i];
        strays += !is_known;
        if (!is_known)
            proc_signal_tree(state->host_proc, pids[i], 0, SIGKILL);
    }
    return strays;
}

/* Nothing that its processes see or do from now on is what they were given: it ends, or says itself why it is not born.
 * False: it is nobody's. */
static bool end_unserved(struct spawner_state *state, pid_t server)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->entries[i].server == server) {
            state->entries[i].server = -1;
            if (state->entries[i].own[OWN_PROC] >= 0)
                kill(state->entries[i].pid, state->backend->end_signal);
            return true;
        }
    return false;
}

static _Noreturn void end(struct spawner_state *state);

static void reap(struct spawner_state *state)
{
    struct signalfd_siginfo seen;
    pid_t pid;
    if (read(state->children, &seen, sizeof(seen)) < 0)
        return;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == spawner_disks.quota_pid)
            end(state); /* nothing holds the disk limit any more: the worker sees us gone */
        size_t i = 0;
        while (i < state->count && state->entries[i].pid != pid)
            i++;
        state->is_unswept |= i == state->count;
        if (i < state->count)
            drop_entry(state, &state->entries[i]);
        else if (pid == state->prewarmed.pid)
            prewarmed_drop(&state->prewarmed);
        else if (!end_unserved(state, pid))
            zygotes_forget(&state->zygotes, pid);
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
        struct sandbox_entry *entry = &state->entries[i];
        enum limit_id breach = entry->own[OWN_PROC] < 0 || entry->breached ? LIMIT_COUNT
                                                                           : entry_look(entry, &state->sight);
        if (breach != LIMIT_COUNT)
            end_for(state, entry, breach);
    }
    int64_t pause_ms = WATCH_SHARE * (clock_ms() - began_ms);
    state->watch_at_ms = began_ms + (pause_ms > WATCH_EVERY_MS ? pause_ms : WATCH_EVERY_MS);
}

/* ---- its life ----------------------------------------------------------------------- */

static _Noreturn void end(struct spawner_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        kill(state->entries[i].pid, state->backend->end_signal);
    for (size_t i = 0; i < state->count; i++)
        while (waitpid(state->entries[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
    while (state->host_proc >= 0 && kill_strays(state) > 0)
        waitpid(-1, NULL, 0);
    prewarmed_drop(&state->prewarmed);
    zygotes_end(&state->zygotes);
    disks_close(&spawner_disks);
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

static int prepare(struct spawner_state *state, struct fail *fail)
{
    prctl(PR_SET_NAME, "sluice-spawner");
    setsid();
    set_signals(state);
    container_prepare_filter();
    seccomp_root_prepare();
    descriptors_allow_all();
    cpus_init(&state->cpus);
    if (state->children < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, state->births) < 0)
        return fail_set(fail, -errno, "the spawner's descriptors: %s", strerror(errno));
    spawner_init = (struct init_setup){.spawner = state->setup,
                                       .disks = spawner_disks.path,
                                       .uid = geteuid(),
                                       .gid = getegid(),
                                       .inside_uid = CONTAINER_UID,
                                       .inside_gid = CONTAINER_UID,
                                       .births = state->births[1]};
    return 0;
}

/* Or why there is none, and then it ends. */
static void say_ready(const struct spawner_state *state, const struct fail *fail)
{
    struct wire_head head = {.verb = WIRE_DONE, .number = {fail->code}};
    if (wire_send(state->worker, &head, slice_from_str(fail->text), NULL, 0) < 0 || fail->code < 0)
        _exit(1);
}

static void serve_worker(struct spawner_state *state)
{
    int got = wire_receive(state->worker, &state->asked);
    if (got == 0)
        end(state);
    if (got < 0)
        return;
    int said = state->asked.head.verb == WIRE_CONTAINER ? spawner_open_container(state)
               : state->asked.head.verb == WIRE_KERNEL  ? spawner_fork_kernel(state)
                                                        : 0;
    if (said == -EPIPE)
        end(state);
    wire_close_fds(&state->asked);
}

static int until_next_ms(struct spawner_state *state)
{
    const struct zygote *zygote;
    if (makes_prewarmed(state) && find_wanted(state, &zygote))
        return 0;
    int most = state->is_unswept && cgroups_are_there(&state->setup->cgroups) ? SWEEP_AFTER_MS : -1;
    if (state->count == 0)
        return most;
    int64_t left = state->watch_at_ms - clock_ms();
    return most >= 0 && left > most ? most : left > 0 ? (int)left : 0;
}

static void sweep_groups(struct spawner_state *state)
{
    size_t living = state->count + (state->prewarmed.pid > 0);
    for (size_t i = 0; i < ZYGOTES_MAX; i++)
        living += state->zygotes.each[i].prewarmed.pid > 0;
    state->is_unswept = cgroups_are_there(&state->setup->cgroups) &&
                        cgroups_sweep_containers(&state->setup->cgroups) > living;
}

/* Who loses his parent is ours to end. */
static void prepare_plain(struct spawner_state *state)
{
    state->host_proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state->host_proc < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        fail_set(&state->base, -errno, "the spawner: %s", strerror(errno));
}

static void prepare_containers(struct spawner_state *state)
{
    const struct spawner_setup *setup = state->setup;
    if (setup->tier == TIER_landlock)
        landlock_filter_prepare();
    if (!tier_has_namespaces(setup->tier))
        prepare_plain(state);
    else if (!setup->has_namespaces)
        return; /* clones fail, and say why */
    else
        base_mounts_make(setup->scratch, &state->base);
    if (state->base.code == 0)
        disks_open(&spawner_disks, setup->tier, setup->scratch, setup->disks, state->births[1], &state->base);
    if (state->base.code == 0 && setup->tier == TIER_apptainer)
        apptainer_prepare(spawner_disks.path, setup->apptainer_program, &state->base);
    if (setup->apptainer_program >= 0)
        close(setup->apptainer_program); /* it has been copied */
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
    struct fail fail = {0};
    struct spawner_state *state = make_state();
    state->worker = socket;
    state->setup = setup;
    state->backend = sandbox_backend(setup->tier);
    spawner_disks.quota = state->host_proc = -1;
    prepare(state, &fail);
    say_ready(state, &fail);
    prepare_containers(state);
    for (;;) {
        int quota = disks_is_waiting(&spawner_disks) ? spawner_disks.quota : -1;
        struct pollfd on[] = {{state->worker, POLLIN, 0},
                              {state->births[0], POLLIN, 0},
                              {state->children, POLLIN, 0},
                              {quota, POLLOUT, 0}};
        bool is_idle = poll(on, 4, until_next_ms(state)) == 0;
        if (is_idle && makes_prewarmed(state))
            make_prewarmed(state);
        if (is_idle && state->is_unswept)
            sweep_groups(state);
        if (on[2].revents)
            reap(state);
        if (on[1].revents)
            take_birth(state);
        if (on[0].revents)
            serve_worker(state);
        if (on[3].revents)
            disks_send(&spawner_disks);
        if (state->count > 0 && clock_ms() >= state->watch_at_ms)
            watch(state);
    }
}
