/* The worker's end of the spawner: starts it, hears which of its sandboxes broke a limit, and ends it. */
#include "workers/sandbox/spawner_start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/container/namespaces.h"
#include "workers/sandbox/embedded/program.h"
#include "workers/sandbox/sandbox_inside.h"
#include "workers/sandbox/container/masked_paths.h"
#include "workers/sandbox/spawner/spawner.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

enum { SPAWNER_END_MS = 10000 };

static const char *const environment_kept[] = {"PATH",         "LD_LIBRARY_PATH", "ASAN_OPTIONS",
                                               "LSAN_OPTIONS", "UBSAN_OPTIONS",   "TSAN_OPTIONS"};

struct spawner *spawner_start(const char *scratch, struct fail *fail)
{
    return spawner_start_tier(scratch, TIER_overlay_tmpfs, NULL, fail);
}

struct spawner *spawner_start_tier(const char *scratch, enum tier tier, const char *disks, struct fail *fail)
{
    return spawner_start_bounded(scratch, tier, disks, NULL, fail);
}

/* ---- its process ---------------------------------------------------------------------- */

static int read_rights(struct __user_cap_data_struct ret[2])
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    return (int)syscall(SYS_capget, &header, ret);
}

/* Who executes a program keeps the rights that he has in namespaces of his own only where he says so. */
static int keep_rights(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2];
    if (read_rights(rights) < 0)
        return -1;
    for (size_t i = 0; i < 2; i++)
        rights[i].inheritable = rights[i].permitted;
    if (syscall(SYS_capset, &header, rights) < 0)
        return -1;
    for (int right = 0; right < 64; right++)
        if (rights[right / 32].permitted >> right % 32 & 1 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) < 0)
            return -1;
    return 0;
}

/* What it executes is looked for there, and sanitizers read theirs; nothing else of ours is its concern. */
static void list_environment(char *ret[])
{
    for (size_t i = 0; i < COUNT(environment_kept); i++) {
        char *value = getenv(environment_kept[i]); /* of a NAME=VALUE that is one string */
        if (value)
            *ret++ = value - strlen(environment_kept[i]) - 1;
    }
    *ret = NULL;
}

/* In the child. Its descriptors: those of ours that are for everybody, the wire, and no other. */
static int become_spawner(int program, int socket, bool has_namespaces, struct fail *fail)
{
    static char name[] = "sluice-spawner";
    char *arguments[] = {name, NULL}, *environment[COUNT(environment_kept) + 1];
    program = fcntl(program, F_DUPFD_CLOEXEC, SPAWNER_WORKER_FD + 1);
    socket = fcntl(socket, F_DUPFD_CLOEXEC, SPAWNER_WORKER_FD + 1);
    if (program < 0 || socket < 0 || dup2(socket, SPAWNER_WORKER_FD) < 0 ||
        close_range(SPAWNER_WORKER_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return sandbox_say(fail, -errno, "the spawner's descriptors");
    if (has_namespaces && keep_rights() < 0)
        return sandbox_say(fail, -errno, "the spawner's rights");
    list_environment(environment);
    execveat(program, "", arguments, environment, AT_EMPTY_PATH);
    return sandbox_say(fail, -errno, "cannot execute the spawner");
}

/* It answers itself, or we do that in its place. */
static _Noreturn void execute(int program, int socket, bool has_namespaces)
{
    struct fail fail;
    struct wire_head head = {.verb = WIRE_DONE};
    head.number[0] = become_spawner(program, socket, has_namespaces, &fail);
    wire_send(socket, &head, slice_from_str(fail.text), NULL, 0);
    _exit(1);
}

static int fork_spawner(struct spawner *spawner, int program, bool *has_namespaces, struct fail *fail)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return sandbox_say(fail, -errno, "a socket for the spawner");
    spawner->socket = ends[0];
    spawner->pid = tier_has_namespaces(spawner->tier) ? namespaces_fork(has_namespaces) : namespaces_skip();
    int code = spawner->pid < 0 ? sandbox_say(fail, -errno, "cannot start the spawner") : 0;
    if (spawner->pid == 0) {
        close(ends[0]);
        execute(program, ends[1], *has_namespaces);
    }
    close(ends[1]);
    return code;
}

/* ---- what it is told ------------------------------------------------------------------ */

static int await_answer(int socket, struct fail *fail)
{
    AUTO_FREE struct wire_message *answer = malloc(sizeof(*answer));
    if (!answer)
        return sandbox_say(fail, -ENOMEM, "the spawner's answer");
    int got = wire_receive(socket, answer);
    if (got < 0)
        return sandbox_say(fail, got, "the spawner's answer");
    if (got == 0 || answer->head.verb != WIRE_DONE)
        return fail_set(fail, -EPROTO, "the spawner ended before it had begun");
    int code = (int)answer->head.number[0];
    return code < 0 ? fail_set(fail, code, "%.400s", answer->text) : 0;
}

_Static_assert(sizeof(struct spawner_setup) + SECRETS_LIST_MAX <= WIRE_TEXT_MAX, "a setup is one message");

static int hand_over(struct spawner *spawner, struct spawner_setup *setup, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    int *given[SPAWNER_GIVEN_MAX], fds[SPAWNER_GIVEN_MAX];
    size_t count = spawner_list_given(setup, given);
    struct slice secrets = masked_paths_list();
    for (size_t i = 0; i < count; i++)
        fds[i] = *given[i];
    buffer_append(&text, setup, sizeof(*setup));
    buffer_append(&text, secrets.data, secrets.len);
    int code = text.failed ? -ENOMEM
                           : wire_send(spawner->socket, &(struct wire_head){.verb = WIRE_SETUP}, buffer_peek(&text),
                                       fds, count);
    /* -EPIPE: it may have said why */
    return code < 0 && code != -EPIPE ? sandbox_say(fail, code, "the spawner's setup")
                                      : await_answer(spawner->socket, fail);
}

/* ---- its beginning ---------------------------------------------------------------------- */

static int prepare(struct spawner *spawner, struct spawner_setup *setup, const char *scratch, const char *disks,
                   struct fail *fail)
{
    if (access(scratch, F_OK) < 0)
        return fail_set(fail, -errno, "scratch directory %s: %s", scratch, strerror(errno));
    if (strlen(scratch) >= sizeof(setup->scratch) || (disks && strlen(disks) >= sizeof(setup->disks)))
        return fail_set(fail, -ENAMETOOLONG, "scratch directory %.200s: the name is too long", scratch);
    struct __user_cap_data_struct rights[2];
    if (read_rights(rights) < 0)
        return sandbox_say(fail, -errno, "capget");
    setup->rights = rights[0].permitted | (uint64_t)rights[1].permitted << 32;
    strcpy(setup->scratch, scratch);
    strcpy(setup->disks, disks ? disks : "");
    if (masked_paths_find(setup->is_host_root, fail) < 0)
        return fail->code;
    spawner->usages = usages_create(&setup->usages_fd);
    if (!spawner->usages)
        return sandbox_say(fail, -errno, "memory that is shared with the spawner");
    if (setup->tier != TIER_apptainer)
        return 0;
    setup->apptainer_program = program_open(apptainer_program(), "sluice-apptainer-init", scratch, fail);
    return setup->apptainer_program < 0 ? setup->apptainer_program : 0;
}

static int execute_and_tell(struct spawner *spawner, struct spawner_setup *setup, const char *scratch,
                            struct fail *fail)
{
    AUTO_CLOSE int program = program_open(spawner_program(), "sluice-spawner", scratch, fail);
    int code = program < 0 ? program : fork_spawner(spawner, program, &setup->has_namespaces, fail);
    return code == 0 ? hand_over(spawner, setup, fail) : code;
}

static int start(struct spawner *spawner, const char *scratch, const char *disks, struct fail *fail)
{
    struct spawner_setup setup = {.tier = spawner->tier,
                                  .usages_fd = -1,
                                  .apptainer_program = -1,
                                  .is_in_memory = spawner->is_in_memory,
                                  .is_host_root = geteuid() == 0,
                                  .cgroups = {.base = -1, .ours = -1}};
    if (spawner->cgroups)
        setup.cgroups = *spawner->cgroups;
    int code = prepare(spawner, &setup, scratch, disks, fail);
    if (code == 0)
        code = execute_and_tell(spawner, &setup, scratch, fail);
    cleanup_close(&setup.usages_fd);
    cleanup_close(&setup.apptainer_program);
    return code;
}

struct spawner *spawner_start_bounded(const char *scratch, enum tier tier, const char *disks,
                                      const struct cgroups *cgroups, struct fail *fail)
{
    struct spawner *spawner = calloc(1, sizeof(*spawner));
    if (!spawner) {
        sandbox_say(fail, -ENOMEM, "cannot start the spawner");
        return NULL;
    }
    spawner->tier = tier;
    /* inside of a bound fuse-overlayfs stalls; the others' own programs need much */
    spawner->cgroups = tier == TIER_overlay_tmpfs || tier == TIER_overlay_disk ? cgroups : NULL;
    spawner->is_in_memory = !tier_is_on_disk(tier) || cgroup_is_memory(scratch);
    spawner->socket = spawner->channel.socket = -1;
    if (start(spawner, scratch, disks, fail) < 0)
        spawner_stop(&spawner);
    return spawner;
}

/* ---- its life ---------------------------------------------------------------------------- */

static void on_spawner_message(void *arg, struct wire_message *message)
{
    struct spawner *spawner = arg;
    if (message->head.verb != WIRE_BREACH)
        return;
    for (struct sandbox *it = spawner->sandboxes; it; it = it->next)
        if (it->id == message->head.id) {
            snprintf(it->breach, sizeof(it->breach), "%.15s", message->text);
            sandbox_stop_using(it);
        }
}

static void on_spawner_lost(void *arg) { (void)arg; } /* its sandboxes die with it, each heard of */

bool spawner_attach(struct spawner *spawner, struct loop *loop)
{
    spawner->channel.heard = on_spawner_message;
    spawner->channel.lost = on_spawner_lost;
    spawner->channel.arg = spawner;
    return channel_open(&spawner->channel, loop, take_fd(&spawner->socket));
}

pid_t spawner_pid(const struct spawner *spawner) { return spawner->pid; }

size_t spawner_count(const struct spawner *spawner)
{
    size_t count = 0;
    for (const struct sandbox *sandbox = spawner->sandboxes; sandbox; sandbox = sandbox->next)
        count++;
    return count;
}

static void await_end(pid_t pid)
{
    AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, SPAWNER_END_MS) == 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void spawner_stop(struct spawner **spawner)
{
    struct spawner *it = *spawner;
    if (!it)
        return;
    *spawner = NULL;
    while (it->sandboxes) {
        struct sandbox *sandbox = it->sandboxes;
        sandbox_stop_using(sandbox);
        sandbox_unlist(sandbox);
    }
    channel_close(&it->channel);
    cleanup_close(&it->socket);
    if (it->pid > 0)
        await_end(it->pid);
    cgroups_clear(it->cgroups);
    usages_destroy(&it->usages);
    free(it);
}
