/* What is asked of a sandbox's pid 1: files, processes, the archive of what was written. */
#include "workers/sandbox/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/sandbox_inside.h"
#include "workers/sandbox/cgroup/starved.h"

static int call(struct sandbox *sandbox, struct wire_head head, struct slice text, const int *fds, size_t fd_count,
                struct channel_answer *ret, struct fail *fail)
{
    int code = sandbox_check(sandbox, fail);
    if (code < 0)
        return code;
    code = channel_call(&sandbox->channel, &head, text, fds, fd_count, ret, fail);
    if (code == -ECONNRESET)
        return sandbox_check(sandbox, fail);
    return code;
}

/* NUL-ended; a relative one is one of the working directory. */
static int add_path(const struct sandbox *sandbox, struct buffer *text, const char *path, struct fail *fail)
{
    const size_t before = text->len;
    if (!*path)
        return fail_set(fail, -ENOENT, "an empty path");
    if (*path != '/' && sandbox->workdir) {
        buffer_append(text, sandbox->workdir, strlen(sandbox->workdir));
        buffer_append(text, "/", 1);
    }
    buffer_append(text, path, strlen(path) + 1);
    if (text->failed)
        return sandbox_say(fail, -ENOMEM, "the path");
    return text->len - before <= PATH_MAX ? 0
                                          : fail_set(fail, -ENAMETOOLONG, "a path longer than %d bytes", PATH_MAX - 1);
}

int sandbox_open_file(struct sandbox *sandbox, const char *path, int flags, mode_t mode, struct fail *fail)
{
    HOLD(sandbox);
    AUTO_BUFFER text = {0};
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_FILE,
                             .number = {flags & ~SANDBOX_AS_USER, mode, (flags & SANDBOX_AS_USER) != 0}};
    int code = add_path(sandbox, &text, path, fail);
    if (code == 0)
        code = call(sandbox, head, buffer_peek(&text), NULL, 0, &answer, fail);
    return code < 0 ? code : answer.fds[0];
}

int sandbox_copy_in(struct sandbox *sandbox, int from, const char *path, mode_t mode, struct fail *fail)
{
    HOLD(sandbox);
    AUTO_BUFFER text = {0};
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_COPY, .number = {mode}};
    int code = add_path(sandbox, &text, path, fail);
    return code < 0 ? code : call(sandbox, head, buffer_peek(&text), &from, 1, &answer, fail);
}

static int change_name(struct sandbox *sandbox, const char *from, const char *to, struct fail *fail)
{
    HOLD(sandbox);
    AUTO_BUFFER text = {0};
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_RENAME, .number = {to != NULL}};
    int code = add_path(sandbox, &text, from, fail);
    if (code == 0 && to)
        code = add_path(sandbox, &text, to, fail);
    if (code < 0)
        return code;
    return call(sandbox, head, buffer_peek(&text), NULL, 0, &answer, fail);
}

int sandbox_rename(struct sandbox *sandbox, const char *from, const char *to, struct fail *fail)
{
    return change_name(sandbox, from, to, fail);
}

int sandbox_remove(struct sandbox *sandbox, const char *path, struct fail *fail)
{
    return change_name(sandbox, path, NULL, fail);
}

static int prepare_place(struct sandbox *sandbox, const char *path, enum wire_place wanted, mode_t mode,
                         struct fail *fail)
{
    HOLD(sandbox);
    AUTO_BUFFER text = {0};
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_PLACE, .number = {wanted, mode}};
    int code = add_path(sandbox, &text, path, fail);
    return code < 0 ? code : call(sandbox, head, buffer_peek(&text), NULL, 0, &answer, fail);
}

int sandbox_make_dir(struct sandbox *sandbox, const char *path, mode_t mode, struct fail *fail)
{
    return prepare_place(sandbox, path, PLACE_DIRECTORY, mode, fail);
}

int sandbox_remake_dir(struct sandbox *sandbox, const char *path, mode_t mode, struct fail *fail)
{
    return prepare_place(sandbox, path, PLACE_NEW_DIRECTORY, mode, fail);
}

int sandbox_clear_path(struct sandbox *sandbox, const char *path, struct fail *fail)
{
    return prepare_place(sandbox, path, PLACE_FREE, 0, fail);
}

int sandbox_open_terminal(struct sandbox *sandbox, int *number, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_TERMINAL};
    int code = call(sandbox, head, (struct slice){0}, NULL, 0, &answer, fail);
    if (code < 0)
        return code;
    *number = (int)answer.result;
    AUTO_CLOSE int master = answer.fds[0];
    /* What it answers next, a signal to nobody, says that it has closed its own copy: ours is the last. */
    head = (struct wire_head){.verb = WIRE_SIGNAL};
    code = call(sandbox, head, (struct slice){0}, NULL, 0, &answer, fail);
    return code < 0 ? code : take_fd(&master);
}

static int ask_state(struct sandbox *sandbox, int fd, enum wire_state what, mode_t mode, int64_t *ret,
                     struct fail *fail)
{
    struct channel_answer answer = {0};
    struct wire_head head = {.verb = WIRE_STATE, .number = {what, mode}};
    int code = call(sandbox, head, (struct slice){0}, &fd, 1, &answer, fail);
    *ret = answer.result;
    return code < 0 ? code : 0;
}

int sandbox_stat_file(struct sandbox *sandbox, int fd, struct stat *ret, struct fail *fail)
{
    HOLD(sandbox);
    int64_t mode = 0, size = 0, links = 0;
    if (fstat(fd, ret) == 0)
        return 0;
    if (errno != EACCES)
        return sandbox_say(fail, -errno, "fstat");
    int code = ask_state(sandbox, fd, STATE_MODE, 0, &mode, fail);
    if (code == 0)
        code = ask_state(sandbox, fd, STATE_SIZE, 0, &size, fail);
    if (code == 0)
        code = ask_state(sandbox, fd, STATE_LINKS, 0, &links, fail);
    *ret = (struct stat){.st_mode = (mode_t)mode, .st_size = size, .st_nlink = (nlink_t)links};
    return code;
}

int sandbox_chmod_file(struct sandbox *sandbox, int fd, mode_t mode, struct fail *fail)
{
    HOLD(sandbox);
    int64_t now;
    if (fchmod(fd, mode & 07777) == 0)
        return 0;
    return errno == EACCES ? ask_state(sandbox, fd, STATE_CHANGE_MODE, mode, &now, fail)
                           : sandbox_say(fail, -errno, "fchmod");
}

int sandbox_write_file(struct sandbox *sandbox, const char *path, const void *data, size_t len, mode_t mode,
                       struct fail *fail)
{
    AUTO_CLOSE int fd = sandbox_open_file(sandbox, path, O_WRONLY | O_CREAT | O_TRUNC, mode, fail);
    if (fd < 0)
        return fd;
    for (size_t done = 0; done < len;) {
        ssize_t wrote = write(fd, (const uint8_t *)data + done, len - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return sandbox_say(fail, wrote < 0 ? -errno : -EIO, path);
        done += (size_t)wrote;
    }
    return sandbox_chmod_file(sandbox, fd, mode, fail);
}

int sandbox_outputs_code(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE ? -error : -ENOEXEC;
}

/* ---- processes ---------------------------------------------------------------------- */

static struct process *add_process(struct sandbox *sandbox, struct wire_head start)
{
    struct process *process = calloc(1, sizeof(*process));
    if (!process)
        return NULL;
    process->start = start;
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
static int start(struct sandbox *sandbox, struct wire_head head, const int *fds, size_t fd_count, struct slice text,
                 pid_t *ret_pid, struct fail *fail)
{
    struct channel_answer answer;
    struct process *process = add_process(sandbox, head);
    if (!process)
        return sandbox_say(fail, -ENOMEM, "the process");
    int code = sandbox_check(sandbox, fail);
    if (code == 0)
        code = channel_call(&sandbox->channel, &process->start, text, fds, fd_count, &answer, fail);
    if (code == -ECONNRESET)
        code = sandbox_check(sandbox, fail);
    if (code < 0) {
        drop_process(sandbox, process);
        return code;
    }
    *ret_pid = process->pid = (pid_t)answer.result;
    return 0;
}

int sandbox_start(struct sandbox *sandbox, const struct sandbox_exec *exec, pid_t *ret_pid, struct fail *fail)
{
    HOLD(sandbox);
    AUTO_BUFFER text = {0};
    for (size_t i = 0; i < exec->fd_count; i++) {
        int32_t target = exec->targets[i];
        buffer_append(&text, &target, sizeof(target));
    }
    struct wire_head head = {.verb = WIRE_START, .number = {0, (int64_t)sandbox->variable_count}};
    const char *workdir = sandbox->workdir ? sandbox->workdir : "";
    buffer_append(&text, workdir, strlen(workdir) + 1);
    for (const char *const *arg = exec->argv; *arg; arg++) {
        buffer_append(&text, *arg, strlen(*arg) + 1);
        head.number[0]++;
    }
    buffer_append(&text, sandbox->variables.data, sandbox->variables.len);
    if (text.failed || sandbox->variables.failed)
        return sandbox_say(fail, -ENOMEM, "the arguments");
    if (text.len > WIRE_TEXT_MAX || exec->fd_count > WIRE_FDS_MAX)
        return fail_set(fail, -E2BIG, "more than %d bytes of arguments or %d descriptors", WIRE_TEXT_MAX, WIRE_FDS_MAX);
    return start(sandbox, head, exec->fds, exec->fd_count, buffer_peek(&text), ret_pid, fail);
}

int sandbox_adopt(struct sandbox *sandbox, pid_t pid, struct fail *fail)
{
    HOLD(sandbox);
    struct wire_head head = {.verb = WIRE_ADOPT, .number = {pid}};
    return start(sandbox, head, NULL, 0, (struct slice){0}, &pid, fail);
}

int sandbox_fork_kernel(struct sandbox *sandbox, const int fds[2], struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer inside, answer;
    struct wire_head ask = {.verb = WIRE_INSIDE};
    struct wire_head head = {.verb = WIRE_KERNEL, .number = {sandbox->id}};
    int all[2 + CHANNEL_FDS_MAX] = {fds[0], fds[1]};
    size_t count = 2;
    if (!sandbox->kernels)
        return fail_set(fail, -ENOENT, "the sandbox was not made for kernels");
    int code = call(sandbox, ask, (struct slice){0}, NULL, 0, &inside, fail);
    if (code < 0)
        return code;
    for (size_t i = 0; i < CHANNEL_FDS_MAX && inside.fds[i] >= 0; i++)
        all[count++] = inside.fds[i];
    if (sandbox->spawner)
        code = channel_call(&sandbox->spawner->channel, &head, (struct slice){0}, all, count, &answer, fail);
    else
        code = sandbox_check(sandbox, fail);
    while (count > 2)
        close(all[--count]);
    return code;
}

int sandbox_signal_tree(struct sandbox *sandbox, pid_t pid, int signal, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_SIGNAL, .number = {pid, signal}};
    return call(sandbox, head, (struct slice){0}, NULL, 0, &answer, fail);
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

int sandbox_kill_command(struct sandbox *sandbox, pid_t shell, uint64_t began_ticks, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_KILL_COMMAND, .number = {shell, (int64_t)began_ticks}};
    return call(sandbox, head, (struct slice){0}, NULL, 0, &answer, fail);
}

void sandbox_kill_all_later(struct sandbox *sandbox)
{
    struct wire_head head = {.verb = WIRE_KILL_ALL};
    channel_tell(&sandbox->channel, &head);
}

void sandbox_kill_tree_later(struct sandbox *sandbox, pid_t pid)
{
    struct wire_head head = {.verb = WIRE_SIGNAL, .number = {pid, SIGKILL}};
    channel_tell(&sandbox->channel, &head);
}

/* Of those that have a group the kernel tells whom it ended; of all others only that somebody was. */
static int check_memory(struct sandbox *sandbox, struct fail *fail)
{
    const uint64_t now = starved_count(), starved = now > sandbox->starved_before ? now - sandbox->starved_before : 0;
    sandbox_hear_kernel(sandbox);
    if (sandbox->cgroup >= 0 || starved == 0)
        return sandbox_check(sandbox, fail);
    return fail_set(fail, -EIO,
                    "the kernel killed %llu processes for want of memory while the sandbox was "
                    "open, and some may "
                    "have been its: no memory was left on the node or in the worker's own cgroup",
                    (unsigned long long)starved);
}

int sandbox_confirm(struct sandbox *sandbox, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_CONFIRM, .number = {clock_us()}};
    int code = call(sandbox, head, (struct slice){0}, NULL, 0, &answer, fail);
    return code < 0 ? code : check_memory(sandbox, fail);
}

static int pack(struct sandbox *sandbox, bool goes_on, int fd, uint64_t *bytes, struct fail *fail)
{
    HOLD(sandbox);
    struct channel_answer answer;
    struct wire_head head = {.verb = WIRE_PACK, .number = {goes_on}};
    int code = call(sandbox, head, (struct slice){0}, &fd, 1, &answer, fail);
    if (code == 0)
        *bytes = (uint64_t)answer.result;
    return code;
}

int sandbox_pack(struct sandbox *sandbox, int fd, uint64_t *bytes, struct fail *fail)
{
    return pack(sandbox, false, fd, bytes, fail);
}

int sandbox_snapshot(struct sandbox *sandbox, int fd, uint64_t *bytes, struct fail *fail)
{
    return pack(sandbox, true, fd, bytes, fail);
}
