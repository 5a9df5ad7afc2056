#include "workers/sandbox/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/cleanup.h"
#include "workers/fiber.h"
#include "workers/sandbox/apart.h"
#include "workers/sandbox/room.h"
#include "workers/sandbox/sandbox_inside.h"
#include "workers/sandbox/spawner.h"

enum { SPAWNER_END_MS = 10000, MIB_MAX = 1 << 24, PROCESSES_MAX = 1 << 20 };

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
    bool is_apart, is_root = geteuid() == 0;
    spawner->pid = apart_fork(&is_apart);
    if (spawner->pid == 0) {
        close(sockets[0]);
        spawner_run(sockets[1], scratch, is_root);
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
        if (it->id == message->head.id) {
            snprintf(it->breach, sizeof(it->breach), "%.15s", message->text);
            stop_using(it);
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
