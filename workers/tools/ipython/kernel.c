#include "workers/tools/ipython/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/loop_now.h"
#include "workers/sandbox/sandbox.h"
#include "common/base/text.h"
#include "workers/inside/inside.h"
#include "workers/sandbox/requests.h"

enum {
    CHANNEL_FD = 200, /* of the driver */
    START_MS = 60000, /* a cold image on a slow file system */
    FORK_MS = 10000,  /* for the fork server: it may be importing still */
    SEND_MS = 5000,
    RETURN_MS = 500,  /* after it closed its channel, to be gone */
    KILLED_MS = 5000, /* the kernel's time to end what was killed */
    PAGE = 4096,
};

static const struct program {
    const char *name;
    const unsigned char *bytes;
    const size_t *len;
} ipython_driver = {"ipython_driver.py", ipython_driver_py, &ipython_driver_py_len},
  jupyter_driver = {"jupyter_driver.py", jupyter_driver_py, &jupyter_driver_py_len};
static const char *const interpreters[] = {"/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3",
                                           "/opt/conda/bin/python3"};

/* ---- the process -------------------------------------------------------------------- */

void kernel_init(struct kernel *kernel, struct sandbox *sandbox)
{
    *kernel = (struct kernel){.sandbox = sandbox, .socket = -1, .output = -1};
}

void kernel_init_jupyter(struct kernel *kernel, struct sandbox *sandbox, const char *spec)
{
    kernel_init(kernel, sandbox);
    snprintf(kernel->jupyter, sizeof(kernel->jupyter), "%.64s", spec);
}

void kernel_finish(struct kernel *kernel)
{
    cleanup_close(&kernel->socket);
    cleanup_close(&kernel->output);
    kernel->socket = kernel->output = -1;
    kernel->frame_len = 0;
    kernel->is_closed = kernel->is_forked = false;
    kernel->seen = 0;
    kernel->pid = 0;
}

/* Among the files that the sandbox can only read. */
static int install(const struct sandbox *sandbox, const struct program *program, struct fail *fail)
{
    AUTO_CLOSE int fd = openat(sandbox_commands_dir(sandbox), program->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                               0644);
    if (fd < 0 || write(fd, program->bytes, *program->len) != (ssize_t)*program->len)
        return fail_set(fail, fd < 0 ? -errno : -EIO, "%s: %s", program->name, strerror(errno));
    return 0;
}

/* Its end of the channel in *ret. */
static int make_ends(struct kernel *kernel, int *ret, struct fail *fail)
{
    int ends[2];
    kernel->output = openat(sandbox_outputs_dir(kernel->sandbox), ".", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    if (kernel->output < 0)
        return fail_set(fail, sandbox_outputs_code(errno), "a file in /run/sluice/out: %s", strerror(errno));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_set(fail, -errno, "socketpair: %s", strerror(errno));
    kernel->socket = ends[0];
    *ret = ends[1];
    fcntl(kernel->socket, F_SETFL, O_NONBLOCK);
    return 0;
}

static int execute(struct kernel *kernel, int its_end, struct fail *fail)
{
    char number[16], driver_path[PATH_MAX];
    const bool is_jupyter = *kernel->jupyter != '\0';
    const struct program *driver = is_jupyter ? &jupyter_driver : &ipython_driver;
    int code = install(kernel->sandbox, &ipython_driver, fail); /* the other one imports it */
    if (code == 0 && is_jupyter)
        code = install(kernel->sandbox, driver, fail);
    snprintf(driver_path, sizeof(driver_path), "%s/%s", sandbox_run_path(kernel->sandbox), driver->name);
    snprintf(number, sizeof(number), "%d", CHANNEL_FD);
    for (size_t i = 0; code == 0 && i < sizeof(interpreters) / sizeof(*interpreters); i++) {
        const char *argv[] = {interpreters[i], driver_path, is_jupyter ? kernel->jupyter : number,
                              is_jupyter ? number : NULL, NULL};
        struct sandbox_exec exec = {.argv = argv,
                                    .fds = (int[]){kernel->output, kernel->output, its_end},
                                    .targets = (int[]){1, 2, CHANNEL_FD},
                                    .fd_count = 3};
        code = sandbox_start(kernel->sandbox, &exec, &kernel->pid, fail);
        if (code != -ENOEXEC)
            return code;
        code = 0;
    }
    return code < 0 ? code : fail_set(fail, -ENOEXEC, "there is no python3 that can be executed");
}

/* ---- frames ------------------------------------------------------------------------- */

bool kernel_send(struct kernel *kernel, const json_t *message)
{
    AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    AUTO_BUFFER frame = {0};
    uint32_t len = text ? (uint32_t)strlen(text) : 0;
    int64_t until_ms = loop_now_ms() + SEND_MS;
    buffer_append(&frame, &len, sizeof(len));
    buffer_append(&frame, text, len);
    if (!text || frame.failed || kernel->pid == 0)
        return false;
    for (size_t done = 0; done < frame.len;) {
        ssize_t sent = send(kernel->socket, frame.data + done, frame.len - done, MSG_NOSIGNAL);
        if (sent > 0)
            done += (size_t)sent;
        else if (errno != EAGAIN && errno != EINTR)
            return false;
        else if (loop_now_ms() >= until_ms || await_fd(kernel->socket, EPOLLOUT, SEND_MS) < 0)
            return false;
    }
    return true;
}

/* The first frame of what came, if it is whole. */
static enum kernel_news take_frame(struct kernel *kernel, json_t **ret)
{
    uint32_t len;
    if (kernel->frame_len < sizeof(len))
        return KERNEL_SILENT;
    memcpy(&len, kernel->frame, sizeof(len));
    if (len > KERNEL_FRAME_MAX)
        return KERNEL_BROKEN;
    size_t used = sizeof(len) + len;
    if (kernel->frame_len < used)
        return KERNEL_SILENT;
    const bool is_shallow = text_is_shallow(slice_of(kernel->frame + sizeof(len), len), TEXT_LEVELS_MAX);
    *ret = is_shallow ? json_loadb((char *)kernel->frame + sizeof(len), len, 0, NULL) : NULL;
    kernel->frame_len -= used;
    memmove(kernel->frame, kernel->frame + used, kernel->frame_len);
    return *ret ? KERNEL_SAID : KERNEL_BROKEN;
}

static enum kernel_news receive(struct kernel *kernel, json_t **ret)
{
    for (;;) {
        enum kernel_news news = take_frame(kernel, ret);
        if (news != KERNEL_SILENT)
            return news;
        ssize_t got = recv(kernel->socket, kernel->frame + kernel->frame_len, sizeof(kernel->frame) - kernel->frame_len,
                           0);
        if (got > 0)
            kernel->frame_len += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            kernel->is_closed = true;
            return KERNEL_BROKEN;
        } else if (errno == EAGAIN)
            return KERNEL_SILENT;
    }
}

/* Its end is looked for first: what it said before is in the socket then. */
static int look(struct kernel *kernel, json_t **ret, int *status, struct fail *fail)
{
    int ended = kernel->pid > 0 ? sandbox_poll_exit(kernel->sandbox, kernel->pid, status, fail)
                                : sandbox_check(kernel->sandbox, fail);
    if (ended < 0)
        return ended;
    if (ended == 1)
        kernel->pid = 0;
    enum kernel_news news = receive(kernel, ret);
    return news == KERNEL_SAID || ended == 0 ? (int)news : KERNEL_ENDED;
}

static int await_look(struct kernel *kernel, int64_t until_ms, json_t **ret, int *status, struct fail *fail)
{
    for (;;) {
        int news = look(kernel, ret, status, fail);
        if (news != KERNEL_SILENT || loop_now_ms() >= until_ms)
            return news;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}

/* It closed the channel, as it does by ending: KERNEL_ENDED, KERNEL_BROKEN when it lives on. */
static int await_exit(struct kernel *kernel, int *status, struct fail *fail)
{
    int64_t until_ms = loop_now_ms() + RETURN_MS;
    for (;;) {
        int ended = sandbox_poll_exit(kernel->sandbox, kernel->pid, status, fail);
        if (ended == 1)
            kernel->pid = 0;
        if (ended != 0 || loop_now_ms() >= until_ms)
            return ended < 0 ? ended : ended == 1 ? KERNEL_ENDED : KERNEL_BROKEN;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}

static void on_frame(void *arg, uint32_t events)
{
    (void)events;
    fiber_wake(arg);
}

int kernel_await(struct kernel *kernel, int64_t until_ms, json_t **ret, int *status, struct fail *fail)
{
    struct loop *loop = fiber_loop();
    *ret = NULL;
    struct loop_watch *watch = loop_watch(loop, kernel->socket, EPOLLIN, on_frame, fiber_current());
    if (!watch)
        return fail_memory(fail);
    int news = await_look(kernel, until_ms, ret, status, fail);
    loop_unwatch(loop, &watch);
    if (news == KERNEL_BROKEN && kernel->pid > 0 && kernel->is_closed)
        news = await_exit(kernel, status, fail);
    if (kernel->pid > 0)
        sandbox_forget_exit(kernel->sandbox, kernel->pid);
    return news;
}

/* ---- output ------------------------------------------------------------------------- */

void kernel_collect(struct kernel *kernel, struct output *output)
{
    struct stat it;
    if (kernel->output < 0 || fstat(kernel->output, &it) < 0)
        return;
    uint64_t size = (uint64_t)it.st_size;
    if (size > kernel->seen)
        output_append_part(output, kernel->output, kernel->seen, size);
    kernel->seen = size; /* it may have become shorter: the file is the agent's */
    if (size >= PAGE)
        fallocate(kernel->output, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)(size / PAGE * PAGE));
}

/* ---- life --------------------------------------------------------------------------- */

static void note_about(struct kernel *kernel, const json_t *hello)
{
    const char *python = json_string_value(json_object_get(hello, "python"));
    const char *ipython = json_string_value(json_object_get(hello, "ipython"));
    snprintf(kernel->about, sizeof(kernel->about), "Python %.64s%s%.64s", python ? python : "?",
             ipython ? ", " : " without IPython", ipython ? ipython : "");
    text_repair(kernel->about);
}

/* Before it was ready. */
static int explain_end(struct kernel *kernel, int status, struct fail *fail)
{
    struct output said;
    size_t len;
    output_init(&said, 300);
    kernel_collect(kernel, &said);
    AUTO_FREE char *text = output_take(&said, &len);
    if (text)
        text_repair(text);
    if (*kernel->jupyter && text && len > 0) /* it says itself why */
        return fail_set(fail, -ENOEXEC, "%.*s", (int)strcspn(text, "\n"), text);
    return fail_set(fail, -ENOEXEC, "python3 does not run: it ended with %d: %s", status, text ? text : "");
}

static int await_ready(struct kernel *kernel, struct fail *fail)
{
    json_t *hello;
    int status = 0;
    int news = kernel_await(kernel, loop_now_ms() + START_MS, &hello, &status, fail);
    if (news == KERNEL_SAID) {
        note_about(kernel, hello);
        json_decref(hello);
        return 0;
    }
    if (news == KERNEL_ENDED)
        return explain_end(kernel, status, fail);
    return news < 0 ? news
                    : fail_set(fail, -ENOEXEC, "%s%s does not become ready",
                               *kernel->jupyter ? "the Jupyter kernel " : "python3", kernel->jupyter);
}

/* By the fork server: 1 when it is ready; 0: it must be started the other way; negative errno. */
static int fork_one(struct kernel *kernel, struct fail *fail)
{
    json_t *hello = NULL;
    int status, end = -1, code = make_ends(kernel, &end, fail);
    AUTO_CLOSE int its_end = end;
    if (code < 0)
        return code;
    if (sandbox_fork_kernel(kernel->sandbox, (int[]){its_end, kernel->output}, fail) < 0)
        return sandbox_check(kernel->sandbox, fail);
    cleanup_close(&its_end); /* or its death would not be heard of */
    its_end = -1;
    int news = kernel_await(kernel, loop_now_ms() + FORK_MS, &hello, &status, fail);
    pid_t pid = (pid_t)json_integer_value(json_object_get(hello, "pid"));
    if (pid > 1 && (code = sandbox_adopt(kernel->sandbox, pid, fail)) == 0) {
        kernel->pid = pid;
        kernel->is_forked = true;
        note_about(kernel, hello);
    }
    json_decref(hello);
    return news < 0 ? news : kernel->pid > 0 ? 1 : code == -ESRCH ? 0 : code;
}

int kernel_start_here(struct kernel *kernel, struct fail *fail)
{
    kernel_finish(kernel);
    int end = -1, code = make_ends(kernel, &end, fail);
    AUTO_CLOSE int its_end = end;
    if (code == 0)
        code = execute(kernel, its_end, fail);
    cleanup_close(&its_end);
    its_end = -1;
    if (code == 0)
        code = await_ready(kernel, fail);
    if (code < 0 && kernel->pid > 0)
        sandbox_kill_tree_later(kernel->sandbox, kernel->pid);
    if (code < 0)
        kernel_finish(kernel);
    return code;
}

int kernel_start(struct kernel *kernel, struct fail *fail)
{
    kernel_finish(kernel);
    int code = *kernel->jupyter ? 0 : fork_one(kernel, fail);
    if (code == 0)
        return kernel_start_here(kernel, fail);
    if (code < 0)
        kernel_finish(kernel);
    return code < 0 ? code : 0;
}

int kernel_kill(struct kernel *kernel, struct fail *fail)
{
    int status, ended = 0;
    int64_t until_ms = loop_now_ms() + KILLED_MS;
    int code = kernel->pid > 0 ? sandbox_signal_tree(kernel->sandbox, kernel->pid, SIGKILL, fail) : 0;
    while (code == 0 && kernel->pid > 0 && ended == 0 && loop_now_ms() < until_ms) {
        ended = sandbox_poll_exit(kernel->sandbox, kernel->pid, &status, fail);
        if (ended == 0)
            code = await_wake(until_ms - loop_now_ms());
    }
    if (kernel->pid > 0)
        sandbox_forget_exit(kernel->sandbox, kernel->pid);
    kernel_finish(kernel);
    if (code < 0)
        return fail_set(fail, code, "the kernel does not end");
    return ended < 0 ? ended : 0;
}
