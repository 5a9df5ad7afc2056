#include "workers/handlers/processes/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/files/dirtree.h"
#include "workers/handlers/processes/process.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/requests.h"

static void greeted(void *arg) { fiber_wake(((struct own_handler *)arg)->fiber); }

static void broken(void *arg, enum connection_break how, const char *why)
{
    (void)how;
    struct own_handler *own = arg;
    char words[sizeof(own->why) + HANDLER_NAME_MAX + 32];
    snprintf(own->why, sizeof(own->why), "%.*s", SLICE_ARG(text_cut(why, sizeof(own->why) - 1)));
    text_sanitize(own->why);
    snprintf(words, sizeof(words), "the task's handler %s: %s", own->handler->name, own->why);
    peer_close(&own->peer, words);
    fiber_wake(own->fiber);
}

/* ---- its start -------------------------------------------------------------------------------- */

/* A file that those inside can only read. */
static int write_script(struct sandbox *sandbox, const struct task_handler *handler, const char *stage,
                        const char *name, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    buffer_printf(&text, "export SLUICE_HANDLER=%s SLUICE_HANDLER_FD=3 SLUICE_STAGE=%s\n%s\n", handler->name, stage,
                  handler->command);
    AUTO_CLOSE int fd = openat(sandbox_commands_dir(sandbox), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (text.failed)
        return fail_memory(fail);
    if (fd < 0 || dirtree_write_at(fd, text.data, text.len, 0) < 0)
        return fail_set(fail, -errno, "the command of the handler %s: %s", handler->name, strerror(errno));
    return 0;
}

static int start(struct sandbox *sandbox, const char *name, int socket, int said, struct fail *fail)
{
    char path[PATH_MAX + 64];
    pid_t pid;
    snprintf(path, sizeof(path), "%s/%s", sandbox_run_path(sandbox), name);
    const char *const argv[] = {"/bin/bash", path, NULL};
    const struct sandbox_exec exec = {
        .argv = argv, .fds = (int[]){said, said, socket}, .targets = (int[]){1, 2, 3}, .fd_count = 3};
    return sandbox_start(sandbox, &exec, &pid, fail);
}

/* Takes our ends of both. */
static int connect_it(struct own_handler *own, int socket, int said, struct fail *fail)
{
    const bool says = said_open(&own->said, fiber_loop(), said, own->handler->name);
    const bool speaks = peer_open(&own->peer, fiber_loop(), socket, -1, false);
    return says && speaks ? 0 : fail_memory(fail);
}

static int start_connected(struct own_handler *own, struct sandbox *sandbox, const char *stage, struct fail *fail)
{
    int sockets[2] = {-1, -1}, pipes[2] = {-1, -1};
    char name[32];
    snprintf(name, sizeof(name), "handler%llu", (unsigned long long)sandbox_next_number(sandbox));
    int code = write_script(sandbox, own->handler, stage, name, fail);
    if (code == 0 && (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0 || pipe2(pipes, O_CLOEXEC) < 0 ||
                      fcntl(sockets[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(pipes[0], F_SETFL, O_NONBLOCK) < 0))
        code = fail_set(fail, -errno, "a socket for a handler: %s", strerror(errno));
    if (code == 0)
        code = start(sandbox, name, sockets[1], pipes[1], fail);
    if (code == 0)
        code = connect_it(own, take_fd(&sockets[0]), take_fd(&pipes[0]), fail);
    for (size_t i = 0; i < 2; i++) {
        cleanup_close(&sockets[i]);
        cleanup_close(&pipes[i]);
    }
    return code;
}

/* ---- its hello ---------------------------------------------------------------------------------- */

static int refuse_it(const struct own_handler *own, const char *why, struct fail *fail)
{
    return fail_set(fail, -ENOTRECOVERABLE, "the task's handler %s: %s", own->handler->name, why);
}

static int await_hello(struct own_handler *own, enum handler_role role, struct fail *fail)
{
    const int64_t until_ms = loop_now_ms() + HANDLER_HELLO_MS;
    while (!own->peer.has_hello) {
        if (own->why[0])
            return refuse_it(own, own->why, fail);
        if (loop_now_ms() >= until_ms)
            return refuse_it(own, "it sent no handler.hello within 30 s", fail);
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
    }
    if (!offers_find(&own->peer.offers, role, own->handler->name))
        return refuse_it(own, "it does not offer what the task names it for", fail);
    return 0;
}

int own_handler_open(struct own_handler *own, struct sandbox *sandbox, const struct task_handler *handler,
                     enum handler_role role, const char *stage, struct fail *fail)
{
    *own = (struct own_handler){.handler = handler, .fiber = fiber_current(), .said = {.fd = -1}};
    own->peer = (struct handler_peer){
        .connection = {.fd = -1}, .lost_code = -ENOTRECOVERABLE, .greeted = greeted, .broken = broken, .arg = own};
    int code = start_connected(own, sandbox, stage, fail);
    return code < 0 ? code : await_hello(own, role, fail);
}

void own_handler_close(struct own_handler *own)
{
    if (!own->handler)
        return;
    peer_close(&own->peer, "its job has ended");
    said_close(&own->said);
    own->handler = NULL;
}
