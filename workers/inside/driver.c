#include "workers/inside/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/requests.h"

enum {
    CHANNEL_FD = 200, /* of the driver */
    SEND_MS = 5000,
    RETURN_MS = 500,  /* after it closed its channel, to be gone */
    KILLED_MS = 5000, /* its time to end what was killed */
    PAGE = 4096,
};

static const char *const interpreters[] = {"/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3",
                                           "/opt/conda/bin/python3"};

/* ---- the process -------------------------------------------------------------------- */

void driver_init(struct driver *driver, struct sandbox *sandbox)
{
    *driver = (struct driver){.sandbox = sandbox, .socket = -1, .output = -1};
}

void driver_finish(struct driver *driver)
{
    cleanup_close(&driver->socket);
    cleanup_close(&driver->output);
    driver->socket = driver->output = -1;
    driver->frame_len = 0;
    driver->is_closed = false;
    driver->seen = 0;
    driver->pid = 0;
}

int driver_install(const struct sandbox *sandbox, const struct program *program, struct fail *fail)
{
    AUTO_CLOSE int fd = openat(sandbox_commands_dir(sandbox), program->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                               0644);
    if (fd < 0 || write(fd, program->bytes, *program->len) != (ssize_t)*program->len)
        return fail_set(fail, fd < 0 ? -errno : -EIO, "%s: %s", program->name, strerror(errno));
    return 0;
}

int driver_make_ends(struct driver *driver, int *ret, struct fail *fail)
{
    int ends[2];
    driver->output = openat(sandbox_outputs_dir(driver->sandbox), ".", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    if (driver->output < 0)
        return fail_set(fail, sandbox_outputs_code(errno), "a file in /run/sluice/out: %s", strerror(errno));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_set(fail, -errno, "socketpair: %s", strerror(errno));
    driver->socket = ends[0];
    *ret = ends[1];
    fcntl(driver->socket, F_SETFL, O_NONBLOCK);
    return 0;
}

int driver_execute(struct driver *driver, const struct program *program, const char *argument, int its_end,
                   struct fail *fail)
{
    char number[16], path[PATH_MAX];
    int code = driver_install(driver->sandbox, program, fail);
    snprintf(path, sizeof(path), "%s/%s", sandbox_run_path(driver->sandbox), program->name);
    snprintf(number, sizeof(number), "%d", CHANNEL_FD);
    for (size_t i = 0; code == 0 && i < sizeof(interpreters) / sizeof(*interpreters); i++) {
        const char *argv[] = {interpreters[i], path, argument ? argument : number, argument ? number : NULL, NULL};
        struct sandbox_exec exec = {.argv = argv,
                                    .fds = (int[]){driver->output, driver->output, its_end},
                                    .targets = (int[]){1, 2, CHANNEL_FD},
                                    .fd_count = 3};
        code = sandbox_start(driver->sandbox, &exec, &driver->pid, fail);
        if (code != -ENOEXEC)
            return code;
        code = 0;
    }
    return code < 0 ? code : fail_set(fail, -ENOEXEC, "there is no python3 that can be executed");
}

/* ---- frames ------------------------------------------------------------------------- */

bool driver_send(struct driver *driver, const json_t *message)
{
    AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    AUTO_BUFFER frame = {0};
    uint32_t len = text ? (uint32_t)strlen(text) : 0;
    int64_t until_ms = loop_now_ms() + SEND_MS;
    buffer_append(&frame, &len, sizeof(len));
    buffer_append(&frame, text, len);
    if (!text || frame.failed || driver->pid == 0)
        return false;
    for (size_t done = 0; done < frame.len;) {
        ssize_t sent = send(driver->socket, frame.data + done, frame.len - done, MSG_NOSIGNAL);
        if (sent > 0)
            done += (size_t)sent;
        else if (errno != EAGAIN && errno != EINTR)
            return false;
        else if (loop_now_ms() >= until_ms || await_fd(driver->socket, EPOLLOUT, SEND_MS) < 0)
            return false;
    }
    return true;
}

/* The first frame of what came, if it is whole. */
static enum driver_news take_frame(struct driver *driver, json_t **ret)
{
    uint32_t len;
    if (driver->frame_len < sizeof(len))
        return DRIVER_SILENT;
    memcpy(&len, driver->frame, sizeof(len));
    if (len > DRIVER_FRAME_MAX)
        return DRIVER_BROKEN;
    size_t used = sizeof(len) + len;
    if (driver->frame_len < used)
        return DRIVER_SILENT;
    const bool is_shallow = text_is_shallow(slice_of(driver->frame + sizeof(len), len), TEXT_LEVELS_MAX);
    *ret = is_shallow ? json_loadb((char *)driver->frame + sizeof(len), len, 0, NULL) : NULL;
    driver->frame_len -= used;
    memmove(driver->frame, driver->frame + used, driver->frame_len);
    return *ret ? DRIVER_SAID : DRIVER_BROKEN;
}

static enum driver_news receive(struct driver *driver, json_t **ret)
{
    for (;;) {
        enum driver_news news = take_frame(driver, ret);
        if (news != DRIVER_SILENT)
            return news;
        ssize_t got = recv(driver->socket, driver->frame + driver->frame_len, sizeof(driver->frame) - driver->frame_len,
                           0);
        if (got > 0)
            driver->frame_len += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            driver->is_closed = true;
            return DRIVER_BROKEN;
        } else if (errno == EAGAIN)
            return DRIVER_SILENT;
    }
}

/* Its end is looked for first: what it said before is in the socket then. */
static int look(struct driver *driver, json_t **ret, int *status, struct fail *fail)
{
    int ended = driver->pid > 0 ? sandbox_poll_exit(driver->sandbox, driver->pid, status, fail)
                                : sandbox_check(driver->sandbox, fail);
    if (ended < 0)
        return ended;
    if (ended == 1)
        driver->pid = 0;
    enum driver_news news = receive(driver, ret);
    return news == DRIVER_SAID || ended == 0 ? (int)news : DRIVER_ENDED;
}

static int await_look(struct driver *driver, int64_t until_ms, json_t **ret, int *status, struct fail *fail)
{
    for (;;) {
        int news = look(driver, ret, status, fail);
        if (news != DRIVER_SILENT || loop_now_ms() >= until_ms)
            return news;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
}

/* It closed the channel, as it does by ending: DRIVER_ENDED, DRIVER_BROKEN when it lives on. */
static int await_exit(struct driver *driver, int *status, struct fail *fail)
{
    int64_t until_ms = loop_now_ms() + RETURN_MS;
    for (;;) {
        int ended = sandbox_poll_exit(driver->sandbox, driver->pid, status, fail);
        if (ended == 1)
            driver->pid = 0;
        if (ended != 0 || loop_now_ms() >= until_ms)
            return ended < 0 ? ended : ended == 1 ? DRIVER_ENDED : DRIVER_BROKEN;
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

int driver_await(struct driver *driver, int64_t until_ms, json_t **ret, int *status, struct fail *fail)
{
    struct loop *loop = fiber_loop();
    *ret = NULL;
    struct loop_watch *watch = loop_watch(loop, driver->socket, EPOLLIN, on_frame, fiber_current());
    if (!watch)
        return fail_memory(fail);
    int news = await_look(driver, until_ms, ret, status, fail);
    loop_unwatch(loop, &watch);
    if (news == DRIVER_BROKEN && driver->pid > 0 && driver->is_closed)
        news = await_exit(driver, status, fail);
    if (driver->pid > 0)
        sandbox_forget_exit(driver->sandbox, driver->pid);
    return news;
}

/* ---- output ------------------------------------------------------------------------- */

void driver_collect(struct driver *driver, struct output *output)
{
    struct stat it;
    if (driver->output < 0 || fstat(driver->output, &it) < 0)
        return;
    uint64_t size = (uint64_t)it.st_size;
    if (size > driver->seen)
        output_append_part(output, driver->output, driver->seen, size);
    driver->seen = size; /* it may have become shorter: the file is the agent's */
    if (size >= PAGE)
        fallocate(driver->output, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)(size / PAGE * PAGE));
}

int driver_kill(struct driver *driver, struct fail *fail)
{
    int status, ended = 0;
    int64_t until_ms = loop_now_ms() + KILLED_MS;
    int code = driver->pid > 0 ? sandbox_signal_tree(driver->sandbox, driver->pid, SIGKILL, fail) : 0;
    while (code == 0 && driver->pid > 0 && ended == 0 && loop_now_ms() < until_ms) {
        ended = sandbox_poll_exit(driver->sandbox, driver->pid, &status, fail);
        if (ended == 0)
            code = await_wake(until_ms - loop_now_ms());
    }
    if (driver->pid > 0)
        sandbox_forget_exit(driver->sandbox, driver->pid);
    driver_finish(driver);
    if (code < 0)
        return fail_set(fail, code, "python3 does not end");
    return ended < 0 ? ended : 0;
}
