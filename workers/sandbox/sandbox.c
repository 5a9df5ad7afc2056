#include "workers/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/cleanup.h"
#include "workers/fiber.h"
#include "workers/sandbox/channel.h"
#include "workers/sandbox/process.h"
#include "workers/sandbox/room.h"
#include "workers/sandbox/spawner.h"

enum { SPAWNER_END_MS = 10000, MIB_MAX = 1 << 24, PROCESSES_MAX = 1 << 20 };

struct spawner {
    pid_t pid;
    int socket; /* until it is attached */
    struct channel channel;
    struct sandbox *sandboxes;
};

struct process { /* started and not yet waited for */
    struct process *next;
    struct wire_head start; /* its id is also the end's */
    pid_t pid;              /* 0 until the start is answered */
    bool ended;
    int status;
    struct fiber *waiter;
};

struct sandbox {
    struct sandbox *next;
    struct spawner *spawner; /* NULL once that is stopped */
    uint32_t id;             /* the spawner's name for it */
    unsigned holds;          /* the owner's and one for each call under way */
    bool closed, alive;
    char breach[16];
    uint64_t memory_mib, processes_max, numbers;
    int pidfd, commands, outputs;
    struct channel channel; /* to its pid 1 */
    struct process *processes;
};

static int say(struct fail *fail, int code, const char *what)
{
    return fail_set(fail, code, "%s: %s", what, strerror(-code));
}

/* ---- holding ------------------------------------------------------------------------ */

static void forget_processes(struct sandbox *sandbox)
{
    while (sandbox->processes) {
        struct process *process = sandbox->processes;
        sandbox->processes = process->next;
        free(process);
    }
}

void sandbox_hold(struct sandbox *sandbox) { sandbox->holds++; }

void sandbox_release(struct sandbox *sandbox)
{
    if (--sandbox->holds > 0)
        return;
    forget_processes(sandbox);
    cleanup_close(&sandbox->pidfd);
    cleanup_close(&sandbox->commands);
    cleanup_close(&sandbox->outputs);
    free(sandbox);
}

static void cleanup_hold(struct sandbox **sandbox) { sandbox_release(*sandbox); }

/* A caller that awaits keeps the memory, also when the owner closes meanwhile. */
#define HOLD(sandbox)                                                                             \
    __attribute__((cleanup(cleanup_hold), unused)) struct sandbox *held_ = (sandbox);             \
    sandbox_hold(held_)

static void unlist(struct sandbox *sandbox)
{
    struct sandbox **at = sandbox->spawner ? &sandbox->spawner->sandboxes : NULL;
    while (at && *at && *at != sandbox)
        at = &(*at)->next;
    if (at && *at)
        *at = sandbox->next;
    sandbox->spawner = NULL;
}

/* ---- its end ------------------------------------------------------------------------ */

static void wake_waiters(struct sandbox *sandbox)
{
    for (struct process *p = sandbox->processes; p; p = p->next)
        fiber_wake(p->waiter);
}

static void stop_using(struct sandbox *sandbox)
{
    sandbox->alive = false;
    channel_close(&sandbox->channel);
    wake_waiters(sandbox);
}

/* The breach was said on the spawner's channel before the kill: read that first. */
static void on_lost(void *arg)
{
    struct sandbox *sandbox = arg;
    if (sandbox->spawner)
        channel_drain(&sandbox->spawner->channel);
    stop_using(sandbox);
}

void sandbox_close(struct sandbox **sandbox)
{
    struct sandbox *it = *sandbox;
    if (!it)
        return;
    *sandbox = NULL;
    it->closed = true;
    if (it->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, it->pidfd, SIGKILL, NULL, 0);
    stop_using(it);
    unlist(it);
    sandbox_release(it);
}

int sandbox_check(const struct sandbox *sandbox, struct fail *fail)
{
    if (strcmp(sandbox->breach, "memory") == 0)
        return fail_set(fail, -EIO, "the sandbox used more than its %lu MiB of memory and was killed",
                        (unsigned long)sandbox->memory_mib);
    if (sandbox->breach[0])
        return fail_set(fail, -EIO, "the sandbox had more than its %lu processes and was killed",
                        (unsigned long)sandbox->processes_max);
    if (sandbox->closed)
        return fail_set(fail, -ECANCELED, "the sandbox was closed");
    return sandbox->alive ? 0 : fail_set(fail, -EIO, "the sandbox ended unexpectedly");
}

const char *sandbox_breach(const struct sandbox *sandbox)
{
    return sandbox->breach[0] ? sandbox->breach : NULL;
}

bool sandbox_is_alive(const struct sandbox *sandbox) { return sandbox->alive; }
uint64_t sandbox_next_number(struct sandbox *sandbox) { return ++sandbox->numbers; }
int sandbox_commands_dir(const struct sandbox *sandbox) { return sandbox->commands; }
int sandbox_outputs_dir(const struct sandbox *sandbox) { return sandbox->outputs; }

/* ---- the spawner -------------------------------------------------------------------- */

struct spawner *spawner_start(const char *scratch, struct fail *fail)
{
    int sockets[2];
    if (access(scratch, F_OK) < 0) {
        fail_set(fail, -errno, "scratch directory %s: %s", scratch, strerror(errno));
        return NULL;
    }
    if (geteuid() == 0 && host_image_find_secrets(fail) < 0)
        return NULL;
    struct spawner *spawner = calloc(1, sizeof(*spawner));
    if (!spawner || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        say(fail, spawner ? -errno : -ENOMEM, "cannot start the spawner");
        free(spawner);
        return NULL;
    }
    pid_t parent = getpid();
    spawner->pid = fork();
    if (spawner->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        close(sockets[0]);
        spawner_run(sockets[1], scratch);
    }
    close(sockets[1]);
    spawner->socket = sockets[0];
    spawner->channel.socket = -1;
    if (spawner->pid > 0)
        return spawner;
    say(fail, -errno, "cannot start the spawner");
    close(sockets[0]);
    free(spawner);
    return NULL;
}

static void on_spawner_message(void *arg, struct wire_message *message)
{
    struct spawner *spawner = arg;
    if (message->head.verb != WIRE_BREACH)
        return;
    for (struct sandbox *it = spawner->sandboxes; it; it = it->next)
        if (it->id == message->head.id)
            snprintf(it->breach, sizeof(it->breach), "%.15s", message->text);
}

static void on_spawner_lost(void *arg) { (void)arg; } /* its sandboxes die with it, each heard of */

bool spawner_attach(struct spawner *spawner, struct loop *loop)
{
    spawner->channel.heard = on_spawner_message;
    spawner->channel.lost = on_spawner_lost;
    spawner->channel.arg = spawner;
    return channel_open(&spawner->channel, loop, take_fd(&spawner->socket));
}

void spawner_stop(struct spawner **spawner)
{
    struct spawner *it = *spawner;
    if (!it)
        return;
    *spawner = NULL;
    while (it->sandboxes) {
        struct sandbox *sandbox = it->sandboxes;
        stop_using(sandbox);
        unlist(sandbox);
    }
    channel_close(&it->channel);
    cleanup_close(&it->socket);
    AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, it->pid, 0);
    if (pidfd >= 0 && poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, SPAWNER_END_MS) == 0)
        kill(it->pid, SIGKILL);
    while (waitpid(it->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(it);
}

/* ---- opening ------------------------------------------------------------------------ */

static int check_plan(const struct sandbox_plan *plan, struct fail *fail)
{
    const struct {
        const char *name;
        uint64_t value, most;
    } numbers[] = {
        {"memory_mib", plan->memory_mib, MIB_MAX},
        {"disk_mib", plan->disk_mib, MIB_MAX},
        {"processes", plan->processes, PROCESSES_MAX},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i].value == 0 || numbers[i].value > numbers[i].most)
            return fail_set(fail, -EINVAL, "%s is %lu, not 1 to %lu", numbers[i].name,
                            (unsigned long)numbers[i].value, (unsigned long)numbers[i].most);
    if (!plan->image || (!host_image_is(plan->image) && plan->image[0] != '/'))
        return fail_set(fail, -EINVAL, "the image is neither \"host\" nor an absolute path");
    if (plan->layer_count > ROOM_LAYERS_MAX)
        return fail_set(fail, -EINVAL, "more than %d layers", ROOM_LAYERS_MAX);
    return 0;
}

static void add_string(struct buffer *text, const char *string)
{
    buffer_append(text, string, strlen(string) + 1);
}

/* The processes' ends are noted here; who waits for them looks in sandbox_poll_exit. */
static void on_message(void *arg, struct wire_message *message)
{
    struct sandbox *sandbox = arg;
    if (message->head.verb != WIRE_EXITED)
        return;
    for (struct process *p = sandbox->processes; p; p = p->next)
        if (p->start.id == message->head.id) {
            p->ended = true;
            p->status = (int)message->head.number[0];
            fiber_wake(p->waiter);
        }
}

static int ask_spawner(struct spawner *spawner, const struct sandbox_plan *plan, uint32_t *id,
                       struct channel_answer *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct wire_head head = {
        .verb = WIRE_ROOM,
        .number = {(int64_t)plan->memory_mib, (int64_t)plan->disk_mib, (int64_t)plan->processes}};
    add_string(&text, plan->image);
    for (size_t i = 0; i < plan->layer_count; i++)
        add_string(&text, plan->layers[i]);
    if (text.failed)
        return say(fail, -ENOMEM, "the plan");
    int code = channel_call(&spawner->channel, &head, buffer_peek(&text), NULL, 0, ret, fail);
    *id = head.id;
    if (code == -ECONNRESET)
        return fail_set(fail, -EIO, "the spawner is gone");
    return code;
}

static struct sandbox *make_sandbox(struct spawner *spawner, const struct sandbox_plan *plan,
                                    uint32_t id, const struct channel_answer *made)
{
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));
    if (!sandbox) {
        close(made->fds[0]);
        close(made->fds[1]);
        return NULL;
    }
    *sandbox = (struct sandbox){.next = spawner->sandboxes,
                                .spawner = spawner,
                                .id = id,
                                .holds = 1,
                                .alive = true,
                                .memory_mib = plan->memory_mib,
                                .processes_max = plan->processes,
                                .pidfd = made->fds[0],
                                .commands = -1,
                                .outputs = -1,
                                .channel = {.heard = on_message, .lost = on_lost, .arg = sandbox}};
    spawner->sandboxes = sandbox;
    if (!channel_open(&sandbox->channel, spawner->channel.loop, made->fds[1]))
        sandbox_close(&sandbox);
    return sandbox;
}

int sandbox_open(struct spawner *spawner, const struct sandbox_plan *plan, struct sandbox **ret,
                 struct fail *fail)
{
    struct channel_answer answer;
    uint32_t id = 0;
    int code = check_plan(plan, fail);
    if (code == 0)
        code = ask_spawner(spawner, plan, &id, &answer, fail);
    if (code < 0)
        return code;
    struct sandbox *sandbox = make_sandbox(spawner, plan, id, &answer);
    if (!sandbox)
        return say(fail, -ENOMEM, "the sandbox");
    HOLD(sandbox);
    code = channel_expect(&sandbox->channel, WIRE_READY_ID, &answer, fail);
    if (code == -ECONNRESET)
        code = sandbox_check(sandbox, fail);
    if (code < 0) {
        sandbox_close(&sandbox);
        return code;
    }
    sandbox->commands = answer.fds[0];
    sandbox->outputs = answer.fds[1];
    *ret = sandbox;
    return 0;
}

/* ---- calls to pid 1 ----------------------------------------------------------------- */

static int call(struct sandbox *sandbox, struct wire_head head, struct slice text, const int *fds,
                size_t fd_count, struct channel_answer *ret, struct fail *fail)
{
    int code = sandbox_check(sandbox, fail);
    if (code < 0)
        return code;
    code = channel_call(&sandbox->channel, &head, text, fds, fd_count, ret, fail);
    if (code == -ECONNRESET)
        return sandbox_check(sandbox, fail);
    return code;
}

int sandbox_open_file(struct sandbox *sandbox, const char *path, int flags, mode_t mode,
                      struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_FILE, .number = {flags, mode}};
    if (!*path)
        return fail_set(fail, -ENOENT, "an empty path");
    if (strlen(path) >= PATH_MAX)
        return fail_set(fail, -ENAMETOOLONG, "a path longer than %d bytes", PATH_MAX - 1);
    int code = call(sandbox, head, slice_from_str(path), NULL, 0, &answer, fail);
    return code < 0 ? code : answer.fds[0];
}

int sandbox_write_file(struct sandbox *sandbox, const char *path, const void *data, size_t len,
                       mode_t mode, struct fail *fail)
{
    AUTO_CLOSE int fd =
        sandbox_open_file(sandbox, path, O_WRONLY | O_CREAT | O_TRUNC, mode, fail);
    if (fd < 0)
        return fd;
    for (size_t done = 0; done < len;) {
        ssize_t wrote = write(fd, (const uint8_t *)data + done, len - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return say(fail, wrote < 0 ? -errno : -EIO, path);
        done += (size_t)wrote;
    }
    return fchmod(fd, mode & 07777) < 0 ? say(fail, -errno, path) : 0;
}

/* ---- processes ---------------------------------------------------------------------- */

static struct process *add_process(struct sandbox *sandbox)
{
    struct process *process = calloc(1, sizeof(*process));
    if (!process)
        return NULL;
    process->start.verb = WIRE_START;
    process->next = sandbox->processes;
    sandbox->processes = process;
    return process;
}

static void drop_process(struct sandbox *sandbox, const struct process *process)
{
    struct process **at = &sandbox->processes;
    while (*at && *at != process)
        at = &(*at)->next;
    if (*at) {
        struct process *gone = *at;
        *at = gone->next;
        free(gone);
    }
}

static struct process *find_process(const struct sandbox *sandbox, pid_t pid)
{
    struct process *process = sandbox->processes;
    while (process && process->pid != pid)
        process = process->next;
    return process;
}

/* Noted before it is asked for, so that its end cannot come too early. */
static int start(struct sandbox *sandbox, const struct sandbox_exec *exec, struct slice text,
                 pid_t *ret_pid, struct fail *fail)
{
    struct channel_answer answer;
    struct process *process = add_process(sandbox);
    if (!process)
        return say(fail, -ENOMEM, "the process");
    int code = sandbox_check(sandbox, fail);
    if (code == 0)
        code = channel_call(&sandbox->channel, &process->start, text, exec->fds, exec->fd_count,
                            &answer, fail);
    if (code == -ECONNRESET)
        code = sandbox_check(sandbox, fail);
    if (code < 0) {
        drop_process(sandbox, process);
        return code;
    }
    *ret_pid = process->pid = (pid_t)answer.result;
    return 0;
}

int sandbox_start(struct sandbox *sandbox, const struct sandbox_exec *exec, pid_t *ret_pid,
                  struct fail *fail)
{
    HOLD(sandbox);
    AUTO_BUFFER text = {0};
    for (size_t i = 0; i < exec->fd_count; i++) {
        int32_t target = exec->targets[i];
        buffer_append(&text, &target, sizeof(target));
    }
    for (const char *const *arg = exec->argv; *arg; arg++)
        add_string(&text, *arg);
    if (text.failed)
        return say(fail, -ENOMEM, "the arguments");
    if (text.len > WIRE_TEXT_MAX || exec->fd_count > WIRE_FDS_MAX)
        return fail_set(fail, -E2BIG, "more than %d bytes of arguments or %d descriptors",
                        WIRE_TEXT_MAX, WIRE_FDS_MAX);
    return start(sandbox, exec, buffer_peek(&text), ret_pid, fail);
}

int sandbox_poll_exit(struct sandbox *sandbox, pid_t pid, int *status, struct fail *fail)
{
    struct process *process = find_process(sandbox, pid);
    if (process && process->ended) {
        *status = process->status;
        drop_process(sandbox, process);
        return 1;
    }
    int code = sandbox_check(sandbox, fail);
    if (code < 0)
        return code;
    if (!process)
        return fail_set(fail, -ESRCH, "no such process was started");
    process->waiter = fiber_current();
    return 0;
}

void sandbox_forget_exit(struct sandbox *sandbox, pid_t pid)
{
    struct process *process = find_process(sandbox, pid);
    if (process)
        process->waiter = NULL;
}

int sandbox_wait(struct sandbox *sandbox, pid_t pid, struct fail *fail)
{
    HOLD(sandbox);
    for (;;) {
        int status = 0, code = sandbox_poll_exit(sandbox, pid, &status, fail);
        if (code != 0)
            return code < 0 ? code : status;
        code = await_wake(-1);
        if (code < 0) {
            sandbox_forget_exit(sandbox, pid);
            return fail_set(fail, code, code == -ECANCELED ? "cancelled" : "out of time");
        }
    }
}

int sandbox_kill_all(struct sandbox *sandbox, pid_t except, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_KILL_ALL, .number = {except}};
    return call(sandbox, head, (struct slice){0}, NULL, 0, &answer, fail);
}

void sandbox_kill_all_later(struct sandbox *sandbox)
{
    struct wire_head head = {.verb = WIRE_KILL_ALL};
    channel_tell(&sandbox->channel, &head);
}

int sandbox_pack(struct sandbox *sandbox, int fd, uint64_t *bytes, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_PACK};
    int code = call(sandbox, head, (struct slice){0}, &fd, 1, &answer, fail);
    if (code == 0)
        *bytes = (uint64_t)answer.result;
    return code;
}
