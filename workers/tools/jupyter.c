#include "workers/tools/jupyter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <zmq.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/fiber.h"
#include "workers/sandbox/process.h"
#include "workers/text.h"
#include "workers/tools/jupyter_spec.h"
#include "workers/tools/jupyter_text.h"
#include "workers/tools/jupyter_wire.h"

enum {
    START_MS = 60000,
    ASK_EVERY_MS = 100, /* until iopub is live: what it says before that is lost */
    LOOK_EVERY_MS = 10, /* for the sockets' files */
    RETURN_MS = 2000,   /* after an interrupt */
};

enum { SHELL, IOPUB, CONTROL, SOCKETS };

static const struct {
    int type, number; /* in the connection file, of libzmq */
} sockets[SOCKETS] = {{ZMQ_DEALER, 1}, {ZMQ_SUB, 2}, {ZMQ_DEALER, 4}};

struct jupyter {
    struct sandbox *sandbox;
    pid_t pid;
    char name[80], base[32]; /* of the kernelspec; of its files */
    char key[JUPYTER_KEY_SIZE], session[JUPYTER_KEY_SIZE];
    bool by_message;
    struct jupyter_pictures pictures;
    void *context, *sockets[SOCKETS];
    int files[SOCKETS]; /* what they connect to */
    struct loop_watch *watches[SOCKETS];
};

/* One cell, or one question, under way. */
struct exchange {
    char id[JUPYTER_KEY_SIZE];
    bool is_answered, is_idle, failed;
    uint64_t count;
    size_t images;
    struct output *output; /* or NULL */
    struct jupyter_pictures *pictures;
};

const char *jupyter_name(const struct jupyter *jupyter) { return jupyter->name; }

/* ---- sockets ------------------------------------------------------------------------- */

static void disconnect(struct jupyter *jupyter)
{
    for (size_t i = 0; i < SOCKETS; i++) {
        if (jupyter->sockets[i])
            zmq_close(jupyter->sockets[i]);
        jupyter->sockets[i] = NULL;
    }
    if (jupyter->context)
        zmq_ctx_term(jupyter->context); /* nothing lingers, so it does not wait */
    jupyter->context = NULL;
}

/* Opens the kernel's socket itself, whatever its name has become since. */
static int find_socket(const struct jupyter *jupyter, int number)
{
    char name[64];
    struct stat it;
    snprintf(name, sizeof(name), "%s-%d", jupyter->base, number);
    AUTO_CLOSE int fd = openat(sandbox_outputs_dir(jupyter->sandbox), name,
                               O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &it) == 0 && S_ISSOCK(it.st_mode) ? take_fd(&fd) : -1;
}

static bool connect_one(struct jupyter *jupyter, size_t i, int file)
{
    char address[64];
    const int zero = 0, soon_ms = 10; /* it may not listen yet */
    void *made = jupyter->sockets[i] = zmq_socket(jupyter->context, sockets[i].type);
    snprintf(address, sizeof(address), "ipc:///proc/self/fd/%d", file);
    return made && zmq_setsockopt(made, ZMQ_LINGER, &zero, sizeof(zero)) == 0 &&
           zmq_setsockopt(made, ZMQ_RECONNECT_IVL, &soon_ms, sizeof(soon_ms)) == 0 &&
           zmq_setsockopt(made, ZMQ_MAXMSGSIZE, &(int64_t){JUPYTER_MESSAGE_MAX}, sizeof(int64_t)) == 0 &&
           (sockets[i].type != ZMQ_SUB || zmq_setsockopt(made, ZMQ_SUBSCRIBE, "", 0) == 0) &&
           zmq_connect(made, address) == 0;
}

/* ---- waiting ------------------------------------------------------------------------- */

static void on_message(void *arg, uint32_t events)
{
    (void)events;
    fiber_wake(arg);
}

static void unwatch(struct jupyter *jupyter)
{
    for (size_t i = 0; i < SOCKETS; i++)
        loop_unwatch(fiber_loop(), &jupyter->watches[i]);
}

static bool watch(struct jupyter *jupyter)
{
    for (size_t i = 0; i < SOCKETS; i++) {
        int fd;
        size_t size = sizeof(fd);
        if (zmq_getsockopt(jupyter->sockets[i], ZMQ_FD, &fd, &size) == 0)
            jupyter->watches[i] = loop_watch(fiber_loop(), fd, EPOLLIN, on_message, fiber_current());
        if (!jupyter->watches[i])
            return false;
    }
    return true;
}

static void hear(struct exchange *exchange, size_t socket, const struct jupyter_message *message)
{
    const char *type = jupyter_type(message);
    if (!jupyter_answers(message, exchange->id))
        return;
    if (socket == SHELL && strlen(type) > 6 && strcmp(type + strlen(type) - 6, "_reply") == 0) {
        const char *status = json_string_value(json_object_get(message->content, "status"));
        json_int_t count = json_integer_value(json_object_get(message->content, "execution_count"));
        exchange->is_answered = true;
        exchange->failed = !status || strcmp(status, "ok") != 0;
        exchange->count = count > 0 ? (uint64_t)count : 0;
    } else if (socket == IOPUB && strcmp(type, "status") == 0) {
        const char *state = json_string_value(json_object_get(message->content, "execution_state"));
        exchange->is_idle |= state && strcmp(state, "idle") == 0;
    } else if (socket == IOPUB && exchange->output) {
        exchange->images += jupyter_text_append(exchange->output, exchange->pictures, type,
                                                message->content);
    }
}

/* All that is there; a bounded number at a time, so that a flood cannot hold the loop. */
static bool drain(struct jupyter *jupyter, struct exchange *exchange)
{
    bool any = false;
    for (size_t i = 0; i < SOCKETS; i++) {
        struct jupyter_message message;
        for (int n = 0; n < 100 && jupyter_receive(jupyter->sockets[i], jupyter->key, &message) == 1; n++) {
            hear(exchange, i, &message);
            jupyter_message_finish(&message);
            any = true;
        }
    }
    return any;
}

/* 1: answered and idle; 0: not by until_ms; -EPIPE: the kernel ended; other negative errno. */
static int await_exchange(struct jupyter *jupyter, struct exchange *exchange, int64_t until_ms,
                          int *status, struct fail *fail)
{
    for (;;) {
        bool any = drain(jupyter, exchange);
        if (exchange->is_answered && exchange->is_idle)
            return 1;
        int ended = jupyter->pid > 0 ? sandbox_poll_exit(jupyter->sandbox, jupyter->pid, status, fail) : 1;
        if (ended == 1)
            jupyter->pid = 0;
        if (ended != 0)
            return ended < 0 ? ended : -EPIPE;
        int64_t left_ms = until_ms - clock_ms();
        if (left_ms <= 0)
            return 0;
        int woken = any ? await_sleep(0) : await_wake(left_ms);
        if (woken == -ECANCELED || (woken == -ETIMEDOUT && clock_ms() < until_ms))
            return fail_set(fail, woken, woken == -ECANCELED ? "cancelled" : "out of time");
    }
}

static int watch_exchange(struct jupyter *jupyter, struct exchange *exchange, int64_t until_ms,
                          int *status, struct fail *fail)
{
    int news = watch(jupyter) ? await_exchange(jupyter, exchange, until_ms, status, fail)
                              : fail_set(fail, -ENOMEM, "out of memory");
    unwatch(jupyter);
    if (jupyter->pid > 0)
        sandbox_forget_exit(jupyter->sandbox, jupyter->pid);
    return news;
}

/* ---- start --------------------------------------------------------------------------- */

/* Among the outputs: kernels write it once more when they have read it. */
static int write_connection_file(struct jupyter *jupyter, char *path, size_t size, struct fail *fail)
{
    char name[64], ip[64];
    snprintf(name, sizeof(name), "%s.json", jupyter->base);
    snprintf(path, size, "/run/sluice/out/%s", name);
    snprintf(ip, sizeof(ip), "/run/sluice/out/%s", jupyter->base);
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "transport", "ipc", "ip",
                             ip, "signature_scheme", "hmac-sha256", "key", jupyter->key, "shell_port",
                             1, "iopub_port", 2, "stdin_port", 3, "control_port", 4, "hb_port", 5);
    AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    AUTO_CLOSE int fd = openat(sandbox_outputs_dir(jupyter->sandbox), name,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (!text || fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return fail_set(fail, -EIO, "the connection file: %s", strerror(errno));
    return 0;
}

static int launch(struct jupyter *jupyter, struct fail *fail)
{
    char path[96];
    struct jupyter_spec spec;
    int code = write_connection_file(jupyter, path, sizeof(path), fail);
    if (code == 0)
        code = jupyter_spec_read(jupyter->sandbox, jupyter->name, path, &spec, fail);
    if (code < 0)
        return code;
    struct sandbox_exec exec = {.argv = (const char *const *)spec.argv};
    jupyter->by_message = spec.by_message;
    code = sandbox_start(jupyter->sandbox, &exec, &jupyter->pid, fail);
    jupyter_spec_finish(&spec);
    return code == -ENOENT ? fail_set(fail, -EINVAL, "there is no /usr/bin/env in the image") : code;
}

/* Connects to what the kernel binds, as it appears. 0, -EINVAL when it ends instead. */
static int connect_all(struct jupyter *jupyter, int64_t until_ms, struct fail *fail)
{
    for (size_t i = 0; i < SOCKETS; i++) {
        int status, file;
        while ((file = find_socket(jupyter, sockets[i].number)) < 0) {
            int ended = sandbox_poll_exit(jupyter->sandbox, jupyter->pid, &status, fail);
            if (ended == 1)
                jupyter->pid = 0;
            if (ended < 0 || ended == 1 || clock_ms() >= until_ms)
                return ended < 0 ? ended
                                 : fail_set(fail, -EINVAL, "the Jupyter kernel %s does not start", jupyter->name);
            int late = await_sleep(LOOK_EVERY_MS);
            if (late < 0)
                return fail_set(fail, late, late == -ECANCELED ? "cancelled" : "out of time");
        }
        AUTO_CLOSE int held = file; /* connecting takes its name: it is kept until that is done */
        if (!connect_one(jupyter, i, held))
            return fail_set(fail, -EIO, "ZeroMQ: %s", zmq_strerror(zmq_errno()));
        jupyter->files[i] = take_fd(&held);
    }
    return 0;
}

/* Asks until both sockets have answered. */
static int shake_hands(struct jupyter *jupyter, int64_t until_ms, struct fail *fail)
{
    json_t *nothing = json_object();
    int news = 0, status;
    while (news == 0 && clock_ms() < until_ms) {
        struct exchange exchange = {0};
        jupyter_send(jupyter->sockets[SHELL], jupyter->key, jupyter->session, "kernel_info_request",
                     nothing, exchange.id);
        news = watch_exchange(jupyter, &exchange, clock_ms() + ASK_EVERY_MS, &status, fail);
    }
    json_decref(nothing);
    if (news == 0 || news == -EPIPE)
        return fail_set(fail, -EINVAL, "the Jupyter kernel %s does not answer", jupyter->name);
    return news < 0 ? news : 0;
}

int jupyter_open(struct sandbox *sandbox, const char *spec, struct jupyter **ret, struct fail *fail)
{
    struct jupyter *jupyter = calloc(1, sizeof(*jupyter));
    int64_t until_ms = clock_ms() + START_MS;
    if (!jupyter)
        return fail_set(fail, -ENOMEM, "out of memory");
    jupyter->sandbox = sandbox;
    for (size_t i = 0; i < SOCKETS; i++)
        jupyter->files[i] = -1;
    snprintf(jupyter->name, sizeof(jupyter->name), "%.79s", spec);
    snprintf(jupyter->base, sizeof(jupyter->base), "jupyter%lu",
             (unsigned long)sandbox_next_number(sandbox));
    jupyter->pictures = (struct jupyter_pictures){.sandbox = sandbox, .base = jupyter->base};
    jupyter_random(jupyter->key);
    jupyter_random(jupyter->session);
    jupyter->context = zmq_ctx_new();
    int code = jupyter->context ? launch(jupyter, fail) : fail_set(fail, -ENOMEM, "out of memory");
    if (code == 0)
        code = connect_all(jupyter, until_ms, fail);
    if (code == 0)
        code = shake_hands(jupyter, until_ms, fail);
    if (code < 0)
        jupyter_close(&jupyter);
    else
        *ret = jupyter;
    return code;
}

void jupyter_close(struct jupyter **jupyter)
{
    struct jupyter *it = *jupyter;
    if (!it)
        return;
    *jupyter = NULL;
    if (it->pid > 0)
        sandbox_kill_tree_later(it->sandbox, it->pid);
    disconnect(it);
    for (size_t i = 0; i < SOCKETS; i++)
        cleanup_close(&it->files[i]);
    free(it);
}

/* ---- a cell -------------------------------------------------------------------------- */

static int interrupt(struct jupyter *jupyter, struct fail *fail)
{
    char id[JUPYTER_KEY_SIZE];
    if (!jupyter->by_message)
        return sandbox_signal_tree(jupyter->sandbox, jupyter->pid, SIGINT, fail);
    json_t *nothing = json_object();
    jupyter_send(jupyter->sockets[CONTROL], jupyter->key, jupyter->session, "interrupt_request", nothing, id);
    json_decref(nothing);
    return 0;
}

static int execute(struct jupyter *jupyter, const char *code, struct exchange *exchange)
{
    json_t *content = json_pack("{s:s, s:b, s:b, s:{}, s:b, s:b}", "code", code, "silent", 0,
                                "store_history", 1, "user_expressions", "allow_stdin", 0,
                                "stop_on_error", 0); /* or the next one may be aborted, too */
    bool sent = content && jupyter_send(jupyter->sockets[SHELL], jupyter->key, jupyter->session,
                                        "execute_request", content, exchange->id);
    json_decref(content);
    return sent ? 0 : -EPIPE;
}

static int run(struct jupyter *jupyter, const char *code, int64_t timeout_ms,
               struct exchange *exchange, struct ipython_result *ret, struct fail *fail)
{
    int status = 0, news = execute(jupyter, code, exchange);
    if (news == 0)
        news = watch_exchange(jupyter, exchange, clock_ms() + timeout_ms, &status, fail);
    if (news == 0) {
        ret->timed_out = true;
        news = interrupt(jupyter, fail);
        if (news == 0)
            news = watch_exchange(jupyter, exchange, clock_ms() + RETURN_MS, &status, fail);
    }
    if (news < 0 && news != -EPIPE)
        return news;
    ret->is_new = news != 1;
    ret->failed = exchange->failed || ret->timed_out || ret->is_new;
    ret->count = exchange->count;
    ret->images = exchange->images;
    ret->total = exchange->output->total;
    const char *note = ret->is_new ? ret->timed_out ? "[the kernel did not stop when interrupted and was killed; "
                                                      "all variables are gone]\n"
                                                    : "[the kernel ended; all variables are gone]\n"
                       : ret->timed_out ? "[interrupted; variables are kept]\n"
                                        : "";
    output_append(exchange->output, note, strlen(note));
    return 0;
}

int jupyter_run(struct jupyter *jupyter, const char *code, int64_t timeout_ms, size_t output_max,
                struct ipython_result *ret, struct fail *fail)
{
    struct output output;
    struct exchange exchange = {.output = &output, .pictures = &jupyter->pictures};
    int64_t began_us = clock_us();
    *ret = (struct ipython_result){0};
    output_init(&output, output_max);
    int result = run(jupyter, code, timeout_ms, &exchange, ret, fail);
    if (result < 0) {
        output_finish(&output);
        return result;
    }
    ret->seconds = (double)(clock_us() - began_us) / 1e6;
    ret->text = output_take(&output, &ret->len);
    if (!ret->text)
        return fail_set(fail, -ENOMEM, "out of memory");
    text_repair(ret->text);
    return 0;
}
