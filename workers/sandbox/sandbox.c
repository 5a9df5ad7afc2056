#include "workers/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/mounts.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/sandbox_inside.h"
#include "workers/sandbox/cgroup/starved.h"
#include "workers/sandbox/init/backend.h"

enum { MIB_MAX = 1 << 24, PROCESSES_MAX = 1 << 20 };

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
    buffer_finish(&sandbox->touched);
    buffer_finish(&sandbox->variables);
    free(sandbox->workdir);
    cleanup_close(&sandbox->pidfd);
    cleanup_close(&sandbox->cgroup);
    cleanup_close(&sandbox->commands);
    cleanup_close(&sandbox->outputs);
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        cleanup_close(&sandbox->listeners[i]);
    free(sandbox);
}

void sandbox_unlist(struct sandbox *sandbox)
{
    struct sandbox **at = sandbox->spawner ? &sandbox->spawner->sandboxes : NULL;
    while (at && *at && *at != sandbox)
        at = &(*at)->next;
    if (at && *at)
        *at = sandbox->next;
    sandbox->spawner = NULL;
    if (!sandbox->shared)
        return;
    sandbox_get_usage(sandbox, &sandbox->usage);
    usage_give_back(take_ptr(&sandbox->shared));
}

/* ---- its end ------------------------------------------------------------------------ */

static void wake_waiters(struct sandbox *sandbox)
{
    for (struct process *p = sandbox->processes; p; p = p->next)
        fiber_wake(p->waiter);
}

void sandbox_stop_using(struct sandbox *sandbox)
{
    sandbox->alive = false;
    channel_close(&sandbox->channel);
    wake_waiters(sandbox);
}

/* It, or the spawner, which asked before it removed the group. */
void sandbox_hear_kernel(struct sandbox *sandbox)
{
    if (sandbox->cgroup < 0 || !sandbox->shared)
        return;
    cgroup_look(sandbox->cgroup, &sandbox->limits, sandbox->shared);
    if (!sandbox->breach[0] && atomic_load(&sandbox->shared->breaches[LIMIT_MEMORY]) > 0)
        strcpy(sandbox->breach, limit_get(LIMIT_MEMORY)->name);
    sandbox->is_starved = !sandbox->breach[0] && atomic_load(&sandbox->shared->is_starved);
}

/* The breach was said on the spawner's channel before the kill: read that first. */
static void on_lost(void *arg)
{
    struct sandbox *sandbox = arg;
    if (sandbox->spawner)
        channel_drain(&sandbox->spawner->channel);
    sandbox_hear_kernel(sandbox);
    sandbox_stop_using(sandbox);
}

void sandbox_close(struct sandbox **sandbox)
{
    struct sandbox *it = *sandbox;
    if (!it)
        return;
    *sandbox = NULL;
    it->closed = true;
    if (it->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, it->pidfd, it->end_signal, NULL, 0);
    sandbox_stop_using(it);
    sandbox_unlist(it);
    sandbox_release(it);
}

int sandbox_check(const struct sandbox *sandbox, struct fail *fail)
{
    if (strcmp(sandbox->breach, "memory") == 0)
        return fail_set(fail, -EIO, "the sandbox used more than its %lu MiB of memory and was killed",
                        (unsigned long)sandbox->limits.memory_mib);
    if (strcmp(sandbox->breach, "disk") == 0 || strcmp(sandbox->breach, "inodes") == 0)
        return fail_set(fail, -EIO, "the sandbox wrote more than its limit, %s, and was killed", sandbox->breach);
    if (sandbox->breach[0])
        return fail_set(fail, -EIO, "the sandbox had more than its %lu processes and was killed",
                        (unsigned long)sandbox->limits.processes);
    if (sandbox->closed)
        return fail_set(fail, -ECANCELED, "the sandbox was closed");
    if (sandbox->is_starved)
        return fail_set(fail, -EIO,
                        "the kernel killed the sandbox, which was within its limit: no memory was left on "
                        "the node or in the worker's own cgroup");
    return sandbox->alive ? 0 : fail_set(fail, -EIO, "the sandbox ended unexpectedly");
}

const char *sandbox_breach(const struct sandbox *sandbox) { return sandbox->breach[0] ? sandbox->breach : NULL; }

int sandbox_take_listener(struct sandbox *sandbox, size_t i)
{
    int taken = sandbox->listeners[i];
    sandbox->listeners[i] = -1;
    return taken;
}

int sandbox_copy_listener(const struct sandbox *sandbox, size_t i)
{
    return fcntl(sandbox->listeners[i], F_DUPFD_CLOEXEC, 0);
}

uint64_t sandbox_touched(const struct sandbox *sandbox) { return sandbox->touched_count; }

bool sandbox_next_touched(const struct sandbox *sandbox, size_t *at, const char **what, const char **path)
{
    const char *text = (const char *)sandbox->touched.data;
    if (*at >= sandbox->touched.len)
        return false;
    *what = text + *at;
    *path = *what + strlen(*what) + 1;
    *at += strlen(*what) + strlen(*path) + 2;
    return true;
}

void sandbox_spare(struct sandbox *sandbox, bool on) { sandbox->spares = on; }
bool sandbox_spares(const struct sandbox *sandbox) { return sandbox->spares; }
bool sandbox_is_alive(const struct sandbox *sandbox) { return sandbox->alive; }
uint64_t sandbox_next_number(struct sandbox *sandbox) { return ++sandbox->numbers; }
const char *sandbox_workdir(const struct sandbox *sandbox)
{
    return sandbox->workdir ? sandbox->workdir : "/workspace";
}
const char *sandbox_run_path(const struct sandbox *sandbox) { return sandbox->run_path; }
int sandbox_commands_dir(const struct sandbox *sandbox) { return sandbox->commands; }
int sandbox_outputs_dir(const struct sandbox *sandbox) { return sandbox->outputs; }

/* ---- what it uses ------------------------------------------------------------------- */

void sandbox_get_usage(const struct sandbox *sandbox, struct sandbox_usage *ret)
{
    struct usage *usage = sandbox->shared;
    *ret = sandbox->usage;
    if (!usage)
        return;
    if (sandbox->cgroup >= 0)
        cgroup_look(sandbox->cgroup, &sandbox->limits, usage);
    ret->peak_memory_kib = atomic_load(&usage->memory_kib);
    ret->peak_processes = atomic_load(&usage->processes);
    ret->peak_disk_bytes = atomic_load(&usage->disk_bytes);
    ret->peak_inodes = atomic_load(&usage->inodes);
    ret->cpu_seconds = (double)atomic_load(&usage->cpu_us) / 1e6;
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        ret->breaches[i] += atomic_load(&usage->breaches[i]);
}

/* A signal that killed the command itself, or that its shell says killed the last of it. */
static bool died_of(int status, int signal) { return status == 256 + signal || status == 128 + signal; }

void sandbox_count_command(struct sandbox *sandbox, const struct sandbox_output *output, size_t output_max)
{
    struct sandbox_usage *usage = &sandbox->usage;
    uint64_t cut = output->total > output_max ? output->total - output_max : 0;
    usage->commands++;
    usage->timed_out += output->timed_out;
    usage->output_bytes += output->total;
    usage->cut_bytes += cut;
    usage->breaches[LIMIT_COMMAND_TIME] += output->timed_out;
    usage->breaches[LIMIT_OUTPUT] += cut > 0;
    usage->breaches[LIMIT_FILE_SIZE] += died_of(output->status, SIGXFSZ);
}

/* ---- opening ------------------------------------------------------------------------ */

static int check_variables(const char *const *variables, size_t count, struct fail *fail)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(variables[i]) + 1;
    if (count > SANDBOX_VARIABLES_MAX || bytes > SANDBOX_VARIABLES_BYTES_MAX)
        return fail_set(fail, -EINVAL, "%zu environment variables of %zu bytes, of at most %d and %d", count, bytes,
                        SANDBOX_VARIABLES_MAX, SANDBOX_VARIABLES_BYTES_MAX);
    return 0;
}

static bool is_harness(const struct sandbox_harness *harness)
{
    return harness->name[0] && harness->name[0] != '.' && !strchr(harness->name, '/') && harness->dir[0] == '/';
}

static int check_plan(const struct sandbox_plan *plan, struct fail *fail)
{
    const struct {
        const char *name;
        uint64_t value, least, most;
    } numbers[] = {
        {"memory_mib", plan->memory_mib, 1, MIB_MAX},          {"disk_mib", plan->disk_mib, 1, MIB_MAX},
        {"processes", plan->processes, 1, PROCESSES_MAX},      {"inodes", plan->inodes, 0, MIB_MAX},
        {"file_mib", plan->file_mib, 0, SANDBOX_FILE_MIB_MAX},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most)
            return fail_set(fail, -EINVAL, "%s is %lu, not %lu to %lu", numbers[i].name,
                            (unsigned long)numbers[i].value, (unsigned long)numbers[i].least,
                            (unsigned long)numbers[i].most);
    if (!plan->image || (!host_image_is(plan->image) && plan->image[0] != '/'))
        return fail_set(fail, -EINVAL, "the image is neither \"host\" nor an absolute path");
    if (plan->layer_count > CONTAINER_LAYERS_MAX)
        return fail_set(fail, -EINVAL, "more than %d layers", CONTAINER_LAYERS_MAX);
    if (plan->listener_count > LISTENERS_MAX)
        return fail_set(fail, -EINVAL, "more than %d listeners", LISTENERS_MAX);
    if (plan->workdir && plan->workdir[0] != '/')
        return fail_set(fail, -EINVAL, "the working directory is not an absolute path");
    if (plan->harness && !is_harness(plan->harness))
        return fail_set(fail, -EINVAL, "the harness is no name with an absolute path");
    return check_variables(plan->variables, plan->variable_count, fail);
}

static void add_string(struct buffer *text, const char *string) { buffer_append(text, string, strlen(string) + 1); }

/* The processes' ends are noted here; who waits for them looks in sandbox_poll_exit. */
static void on_message(void *arg, struct wire_message *message)
{
    struct sandbox *sandbox = arg;
    if (message->head.verb == WIRE_TOUCHED) {
        sandbox->touched_count = (uint64_t)message->head.number[0];
        buffer_clear(&sandbox->touched);
        buffer_append(&sandbox->touched, message->text, message->text_len);
    }
    if (message->head.verb != WIRE_EXITED)
        return;
    for (struct process *p = sandbox->processes; p; p = p->next)
        if (p->start.id == message->head.id) {
            p->ended = true;
            p->status = (int)message->head.number[0];
            fiber_wake(p->waiter);
        }
}

/* What is forked from a zygote is the usual user in the usual environment. */
static bool shares_zygote(const struct sandbox_plan *plan)
{
    return plan->kernels && !plan->user && !plan->workdir && plan->variable_count == 0;
}

static int ask_spawner(struct spawner *spawner, const struct sandbox_plan *plan, const struct usage *usage,
                       uint32_t *id, struct channel_answer *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct wire_head head = {.verb = WIRE_CONTAINER};
    struct wire_container wanted = {.memory_mib = plan->memory_mib,
                                    .disk_mib = plan->disk_mib,
                                    .processes = plan->processes,
                                    .inodes = plan->inodes,
                                    .file_mib = plan->file_mib ? plan->file_mib : SANDBOX_FILE_MIB_MAX,
                                    .cpus = plan->cpus,
                                    .usage = (uint64_t)(usage - spawner->usages),
                                    .kernels = shares_zygote(plan),
                                    .is_sealed = plan->is_sealed,
                                    .uid = plan->user ? plan->user->uid : CONTAINER_UID,
                                    .gid = plan->user ? plan->user->gid : CONTAINER_UID,
                                    .has_harness = plan->harness != NULL,
                                    .listener_count = plan->listener_count};
    if (plan->listener_count > 0)
        memcpy(wanted.listeners, plan->listeners, plan->listener_count * sizeof(*plan->listeners));
    buffer_append(&text, &wanted, sizeof(wanted));
    add_string(&text, plan->image);
    if (plan->harness) {
        add_string(&text, plan->harness->name);
        add_string(&text, plan->harness->dir);
    }
    for (size_t i = 0; i < plan->layer_count; i++)
        add_string(&text, plan->layers[i]);
    if (text.failed)
        return sandbox_say(fail, -ENOMEM, "the plan");
    int code = channel_call(&spawner->channel, &head, buffer_peek(&text), NULL, 0, ret, fail);
    *id = head.id;
    if (code == -ECONNRESET)
        return fail_set(fail, -EIO, "the spawner is gone");
    return code;
}

/* Each process is told of them; without memory for them none starts (requests.c). */
static void keep_variables(struct sandbox *sandbox, const char *const *variables, size_t count)
{
    buffer_clear(&sandbox->variables);
    sandbox->variable_count = count;
    for (size_t i = 0; i < count; i++)
        add_string(&sandbox->variables, variables[i]);
}

int sandbox_set_variables(struct sandbox *sandbox, const char *const *variables, size_t count, struct fail *fail)
{
    int code = check_variables(variables, count, fail);
    if (code == 0)
        keep_variables(sandbox, variables, count);
    return code;
}

static void keep_environment(struct sandbox *sandbox, const struct sandbox_plan *plan)
{
    keep_variables(sandbox, plan->variables, plan->variable_count);
    if (plan->workdir && !(sandbox->workdir = strdup(plan->workdir)))
        sandbox->variables.failed = true;
}

static struct sandbox *make_sandbox(struct spawner *spawner, const struct sandbox_plan *plan, struct usage *usage,
                                    uint32_t id, const struct channel_answer *made)
{
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));
    if (!sandbox) {
        usage_give_back(usage);
        close(made->fds[0]);
        close(made->fds[1]);
        if (made->fds[2] >= 0)
            close(made->fds[2]);
        return NULL;
    }
    *sandbox = (struct sandbox){
        .next = spawner->sandboxes,
        .spawner = spawner,
        .id = id,
        .holds = 1,
        .shared = usage,
        .alive = true,
        .kernels = shares_zygote(plan) && tier_has_namespaces(spawner->tier),
        .end_signal = sandbox_backend(spawner->tier)->end_signal,
        .pidfd = made->fds[0],
        .cgroup = made->fds[2],
        .limits = {plan->memory_mib, plan->processes, spawner->is_in_memory ? plan->disk_mib : 0},
        .commands = -1,
        .outputs = -1,
        .channel = {.heard = on_message, .lost = on_lost, .arg = sandbox}};
    spawner->sandboxes = sandbox;
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        sandbox->listeners[i] = -1;
    keep_environment(sandbox, plan);
    if (!channel_open(&sandbox->channel, spawner->channel.loop, made->fds[1]))
        sandbox_close(&sandbox);
    return sandbox;
}

/* Where there is no root of its own, those inside know the directory by its name out here. */
static int learn_run_path(struct sandbox *sandbox, int commands, struct fail *fail)
{
    if (tier_has_root(sandbox->spawner->tier)) {
        strcpy(sandbox->run_path, "/run/sluice");
        return 0;
    }
    int code = container_name_of(commands, sandbox->run_path, sizeof(sandbox->run_path));
    return code < 0 ? sandbox_say(fail, code, "the commands") : 0;
}

int sandbox_open(struct spawner *spawner, const struct sandbox_plan *plan, struct sandbox **ret, struct fail *fail)
{
    struct channel_answer answer;
    uint32_t id = 0;
    int code = check_plan(plan, fail);
    if (code < 0)
        return code;
    struct usage *usage = usage_take(spawner->usages, &spawner->last_usage);
    if (!usage)
        return fail_set(fail, -EAGAIN, "there are %d sandboxes already", USAGE_COUNT);
    code = ask_spawner(spawner, plan, usage, &id, &answer, fail);
    if (code < 0) {
        usage_give_back(usage);
        return code;
    }
    struct sandbox *sandbox = make_sandbox(spawner, plan, usage, id, &answer);
    if (!sandbox)
        return sandbox_say(fail, -ENOMEM, "the sandbox");
    HOLD(sandbox);
    code = channel_expect(&sandbox->channel, WIRE_READY_ID, &answer, fail);
    if (code == -ECONNRESET)
        code = sandbox_check(sandbox, fail);
    if (code < 0) {
        sandbox_close(&sandbox);
        return code;
    }
    code = learn_run_path(sandbox, answer.fds[0], fail);
    sandbox->starved_before = starved_count();
    sandbox->commands = answer.fds[0];
    sandbox->outputs = answer.fds[1];
    memcpy(sandbox->listeners, answer.fds + 2, sizeof(sandbox->listeners));
    if (code < 0)
        sandbox_close(&sandbox);
    else
        *ret = sandbox;
    return code;
}
