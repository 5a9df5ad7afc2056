#include "workers/sandbox/init/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/confine.h"
#include "workers/sandbox/container/mounts.h"

const char *const launch_environment[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/workspace",
    "SLUICE_WORKSPACE=/workspace",
    "LANG=C.UTF-8",
    "TERM=dumb",
    NULL,
};

enum { FIXED_COUNT = sizeof(launch_environment) / sizeof(*launch_environment) - 1 };

struct program {
    const char *environ[FIXED_COUNT + CONTAINER_SETTINGS_MAX + LISTENERS_MAX + LAUNCH_VARIABLES_MAX + 1];
    const char *argv[LAUNCH_ARGS_MAX + 1];
    const char *variables[LAUNCH_VARIABLES_MAX + 1];
    const char *workdir; /* "": the workspace */
    int32_t targets[WIRE_FDS_MAX];
    int fds[WIRE_FDS_MAX];
    size_t fd_count;
};

/* As many as there must be, and a NULL. */
static bool read_strings(const struct wire_message *message, size_t *from, const char **ret, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(ret[i] = wire_next_string(message, from)))
            return false;
    ret[count] = NULL;
    return true;
}

static int read_program(const struct wire_message *message, struct program *ret, struct fail *fail)
{
    size_t from = message->fd_count * sizeof(int32_t);
    const int64_t arguments = message->head.number[0], variables = message->head.number[1];
    if (message->text_len < from)
        return fail_set(fail, -EINVAL, "fewer targets than descriptors");
    memcpy(ret->targets, message->text, from);
    memcpy(ret->fds, message->fds, message->fd_count * sizeof(int));
    ret->fd_count = message->fd_count;
    for (size_t i = 0; i < ret->fd_count; i++)
        if (ret->targets[i] < 0 || ret->targets[i] >= CONTAINER_FILES_MAX)
            return fail_set(fail, -EINVAL, "descriptor number %d", ret->targets[i]);
    if (arguments < 1 || arguments > LAUNCH_ARGS_MAX || variables < 0 || variables > LAUNCH_VARIABLES_MAX)
        return fail_set(fail, -E2BIG, "%lld arguments and %lld variables, of at most %d and %d", (long long)arguments,
                        (long long)variables, LAUNCH_ARGS_MAX, LAUNCH_VARIABLES_MAX);
    ret->workdir = wire_next_string(message, &from);
    bool is_whole = read_strings(message, &from, ret->argv, (size_t)arguments) &&
                    read_strings(message, &from, ret->variables, (size_t)variables);
    return is_whole ? 0 : fail_set(fail, -EINVAL, "fewer arguments than were said");
}

/* Moves a descriptor out of the way of every target. */
static int move_up(const struct program *program, int fd)
{
    int above = 2;
    for (size_t i = 0; i < program->fd_count; i++)
        if (program->targets[i] > above)
            above = program->targets[i];
    return fcntl(fd, F_DUPFD_CLOEXEC, above + 1);
}

/* Descriptors to their numbers, /dev/null for 0 to 2 where none is given, and no others. */
static int place_fds(struct program *program)
{
    for (size_t i = 0; i < program->fd_count; i++)
        if ((program->fds[i] = move_up(program, program->fds[i])) < 0)
            return -1;
    if (close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_CLOSE int high_null = null < 0 ? -1 : move_up(program, null);
    for (int fd = 0; fd <= 2; fd++)
        if (dup2(high_null, fd) < 0)
            return -1;
    for (size_t i = 0; i < program->fd_count; i++)
        if (dup2(program->fds[i], program->targets[i]) < 0)
            return -1;
    return 0;
}

void launch_reset_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int drop_last_right(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {0};
    return (int)syscall(SYS_capset, &header, none);
}

/* Whether it is among them, whatever it is there. */
static bool is_set(const char *const *variables, size_t count, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(variables[i], variable, len) == 0)
            return true;
    return false;
}

/* The usual; in its place the container's own word; in place of both the program's; and what the grants are. */
static void set_environment(const struct container_plan *plan, const struct container *container,
                            struct program *program)
{
    size_t count = 0, own = 0;
    while (program->variables[own])
        own++;
    for (size_t i = 0; i < FIXED_COUNT; i++)
        if (!is_set(container->settings, container->setting_count, launch_environment[i]) &&
            !is_set(program->variables, own, launch_environment[i]))
            program->environ[count++] = launch_environment[i];
    for (size_t i = 0; i < container->setting_count; i++)
        if (!is_set(program->variables, own, container->settings[i]))
            program->environ[count++] = container->settings[i];
    for (size_t i = 0; i < own; i++)
        program->environ[count++] = program->variables[i];
    for (size_t i = 0; i < plan->wanted.listener_count; i++)
        program->environ[count++] = container->variables[i];
    program->environ[count] = NULL;
}

/* A working directory that nobody has made yet is made, as those who build images expect. */
static void make_workdir(const char *workdir)
{
    AUTO_CLOSE int root = workdir[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    AUTO_CLOSE int there = root < 0 ? -1 : open_in_root(root, workdir, O_PATH | O_DIRECTORY, 0);
    if (root >= 0 && there < 0)
        container_make_dirs(root, workdir, 0755);
}

static int enter_workdir(const char *workdir, const char *workspace)
{
    return (workdir[0] && chdir(workdir) == 0) || chdir(workspace) == 0 || chdir("/") == 0 ? 0 : -1;
}

/* In the child; comes back only when it failed: -errno of the program's, or errno of what we lack. */
static int become(const struct container_plan *plan, const struct sandbox_backend *backend, const char *workspace,
                  int tell, struct program *program)
{
    struct fail fail;
    setsid();
    launch_reset_signals();
    if (enter_workdir(program->workdir, workspace) < 0)
        return errno;
    if (place_fds(program) < 0 || drop_last_right() < 0)
        return errno;
    container_limit(plan);
    int code = backend->guard ? backend->guard(tell, &fail) : 0;
    if (code == 0)
        code = container_confine_process(plan, &fail);
    if (code < 0)
        return -code;
    execve(program->argv[0], (char *const *)(uintptr_t)program->argv, (char *const *)(uintptr_t)program->environ);
    return -errno;
}

/* The report's other end is closed by what is executed; else it says why not. */
static _Noreturn void be_child(const struct container_plan *plan, const struct sandbox_backend *backend,
                               const struct container *container, struct program *program, int tell)
{
    struct fail fail = {0};
    tell = move_up(program, tell);
    int error = become(plan, backend, container->workspace, tell, program);
    fail_set(&fail, error < 0 ? -ENOEXEC : -error, "cannot execute %s: %s", program->argv[0],
             strerror(error < 0 ? -error : error));
    _exit(write(tell, &fail, sizeof(fail)) < 0 ? 126 : 127);
}

pid_t launch(const struct container_plan *plan, const struct sandbox_backend *backend, struct container *container,
             const struct wire_message *message, int *ret_report, struct fail *fail)
{
    struct program program;
    int report[2];
    int code = read_program(message, &program, fail);
    if (code < 0)
        return code;
    set_environment(plan, container, &program);
    make_workdir(program.workdir);
    if ((backend->meet ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report)
                       : pipe2(report, O_CLOEXEC | O_NONBLOCK)) < 0)
        return fail_set(fail, -errno, "a report: %s", strerror(errno));
    AUTO_CLOSE int told = report[0];
    pid_t pid = fork();
    if (pid == 0)
        be_child(plan, backend, container, &program, report[1]);
    int error = errno;
    close(report[1]);
    if (pid < 0)
        return fail_set(fail, -error, "fork: %s", strerror(error));
    code = backend->meet ? backend->meet(container, told, fail)
                         : 0; /* until then it is out of the reach of those inside */
    if (code == 0 && fcntl(told, F_SETFL, O_NONBLOCK) < 0)
        code = fail_set(fail, -errno, "a report: %s", strerror(errno));
    if (code < 0)
        kill(pid, SIGKILL);
    else
        *ret_report = take_fd(&told);
    return code < 0 ? code : pid;
}

int launch_look(int report, struct fail *fail)
{
    struct fail said;
    ssize_t got = read(report, &said, sizeof(said));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got != sizeof(said) || said.code >= 0)
        return 1;
    return fail_set(fail, said.code, "%.*s", (int)sizeof(said.text) - 1, said.text);
}
