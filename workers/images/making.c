#include "workers/images/making.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "common/cmdline/size.h"
#include "workers/images/verbs.h"

enum { SAID_MAX = 65536, ARGUMENTS_MAX = 16 };

struct image_making {
    struct loop *loop;
    char *image;
    pid_t pid; /* 0: reaped */
    int pidfd, out;
    struct loop_watch *watch_end, *watch_out;
    struct loop_timer *limit;
    bool is_late, is_over;
    struct buffer said;
    struct image_made made;
    void (*ended)(void *arg);
    void *arg;
};

void image_made_finish(struct image_made *made)
{
    free(take_ptr(&made->path));
    free(take_ptr(&made->watch));
}

const struct image_made *image_making_result(const struct image_making *making)
{
    return making->is_over ? &making->made : NULL;
}

/* ---- what it said ------------------------------------------------------------------------------ */

static const char *text_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static int take_path(struct image_making *making, const json_t *said)
{
    struct image_made *made = &making->made;
    const char *path = text_of(said, "path"), *watch = text_of(said, "watch");
    made->path = path ? strdup(path) : NULL;
    made->watch = watch ? strdup(watch) : NULL;
    if (!made->path || (watch && !made->watch))
        return fail_set(&made->fail, -EIO, "the image %.300s: sluice-image did not say where it is", making->image);
    return 0;
}

static int take_refusal(struct image_making *making, const json_t *said)
{
    const json_t *error = json_object_get(said, "error");
    const char *wire = text_of(error, "refusal"), *detail = text_of(error, "detail");
    enum image_refusal refusal = IMAGE_REFUSAL_NONE;
    bool is_known = wire && image_refusal_parse(wire, &refusal);
    int code = !is_known ? -EIO : image_refusal_outcome(refusal) == OUTCOME_TASK ? -EINVAL : -ENOMEDIUM;
    return fail_set(&making->made.fail, code, "%s", detail ? detail : "no image, and no reason given");
}

static bool is_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGFPE || number == SIGILL;
}

static int judge(struct image_making *making, int status)
{
    struct fail *fail = &making->made.fail;
    if (making->is_late)
        return fail_set(fail, -EIO, "the image %.300s was not prepared within %d s", making->image, IMAGE_MAKING_MAX_S);
    if (WIFSIGNALED(status))
        return fail_set(fail, is_crash(WTERMSIG(status)) ? -ENOMEDIUM : -EIO,
                        "the image %.300s: sluice-image was killed by signal %d", making->image, WTERMSIG(status));
    json_t *said = json_loadb((const char *)making->said.data, making->said.len, 0, NULL);
    int code = WEXITSTATUS(status) == IMAGE_EXIT_OK ? take_path(making, said) : take_refusal(making, said);
    json_decref(said);
    return code;
}

/* ---- its end -------------------------------------------------------------------------------------- */

/* What is more than it would ever say is read and let go. */
static void hear(struct image_making *making)
{
    uint8_t bytes[4096];
    ssize_t got;
    while ((got = read(making->out, bytes, sizeof(bytes))) > 0)
        if (making->said.len < SAID_MAX)
            buffer_append(&making->said, bytes, (size_t)got);
    if (got == 0)
        loop_unwatch(making->loop, &making->watch_out);
}

static void out_ready(void *arg, uint32_t events)
{
    (void)events;
    hear(arg);
}

static void process_ended(void *arg, uint32_t events)
{
    struct image_making *making = arg;
    int status;
    (void)events;
    if (waitpid(making->pid, &status, WNOHANG) != making->pid)
        return;
    making->pid = 0;
    loop_unwatch(making->loop, &making->watch_end);
    loop_cancel(making->loop, &making->limit);
    hear(making);
    loop_unwatch(making->loop, &making->watch_out);
    making->made.code = judge(making, status);
    making->is_over = true;
    making->ended(making->arg); /* may destroy it */
}

static void limit_passed(void *arg)
{
    struct image_making *making = arg;
    making->limit = NULL;
    making->is_late = true;
    kill(making->pid, SIGKILL);
}

void image_making_destroy(struct image_making **making)
{
    struct image_making *gone = take_ptr(making);
    if (!gone)
        return;
    if (gone->pid > 0) {
        kill(gone->pid, SIGKILL);
        while (waitpid(gone->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    loop_unwatch(gone->loop, &gone->watch_end);
    loop_unwatch(gone->loop, &gone->watch_out);
    loop_cancel(gone->loop, &gone->limit);
    cleanup_close(&gone->pidfd);
    cleanup_close(&gone->out);
    buffer_finish(&gone->said);
    image_made_finish(&gone->made);
    free(gone->image);
    free(gone);
}

/* ---- its start ------------------------------------------------------------------------------------- */

/* Signals as in a fresh process, and a group of its own: Ctrl-C is for the worker. */
static int spawn(const struct image_order_words *order, int out, pid_t *ret_pid)
{
    char parent[16], max[40];
    const char *argv[ARGUMENTS_MAX] = {order->program, "prepare",    order->image,    "--json",
                                       "--cache",      order->cache, "--with-parent", parent};
    if (order->max_bytes) {
        argv[8] = "--images-max";
        argv[9] = max;
    }
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    size_format(order->max_bytes, max, sizeof(max));
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(ret_pid, order->program, &files, &attributes, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return -error;
}

static int start(struct image_making *making, const struct image_order_words *order, struct fail *fail)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return fail_set(fail, -EIO, "pipe: %s", strerror(errno));
    making->out = ends[0];
    fcntl(ends[1], F_SETFL, 0); /* only our end does not block */
    int code = spawn(order, ends[1], &making->pid);
    close(ends[1]);
    if (code < 0) {
        making->pid = 0;
        return fail_set(fail, -EIO, "the image %.300s: cannot start %.200s: %s", order->image, order->program,
                        strerror(-code));
    }
    making->pidfd = (int)syscall(SYS_pidfd_open, making->pid, 0);
    if (making->pidfd >= 0) {
        making->watch_end = loop_watch(making->loop, making->pidfd, EPOLLIN, process_ended, making);
        making->watch_out = loop_watch(making->loop, making->out, EPOLLIN, out_ready, making);
    }
    making->limit = loop_after(making->loop, IMAGE_MAKING_MAX_S * 1000, limit_passed, making);
    if (!making->watch_end || !making->watch_out || !making->limit)
        return fail_set(fail, -EIO, "cannot watch sluice-image: %s", strerror(errno));
    return 0;
}

struct image_making *image_making_start(struct loop *loop, const struct image_order_words *order,
                                        void (*ended)(void *arg), void *arg, struct fail *fail)
{
    struct image_making *making = calloc(1, sizeof(*making));
    if (!making || !(making->image = strdup(order->image))) {
        free(making);
        fail_set(fail, -EIO, "out of memory");
        return NULL;
    }
    making->loop = loop;
    making->pidfd = making->out = -1;
    making->ended = ended;
    making->arg = arg;
    if (start(making, order, fail) < 0)
        image_making_destroy(&making);
    return making;
}
