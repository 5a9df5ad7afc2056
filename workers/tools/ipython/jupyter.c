#include "workers/tools/ipython/jupyter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/process.h"
#include "common/base/text.h"
#include "workers/tools/ipython/jupyter_spec.h"
#include "workers/tools/ipython/jupyter_text.h"
#include "workers/tools/ipython/jupyter_wire.h"

enum {
    START_MS = 60000,
    ASK_EVERY_MS = 100, /* until iopub is live: what it says before that is lost */
    LOOK_EVERY_MS = 10, /* for the sockets' files */
    RETURN_MS = 2000,   /* after an interrupt */
    TURN_BYTES = 256 << 10, /* that are read before all others have their turn */
};

enum { SHELL, IOPUB, CONTROL, SOCKETS };

static const struct {
    enum jupyter_link_type type;
    int number; /* in the connection file */
    size_t message_max;
} sockets[SOCKETS] = {{JUPYTER_DEALER, 1, 1 << 20},
                      {JUPYTER_SUB, 2, 8 << 20}, /* pictures are here, and base64 */
                      {JUPYTER_DEALER, 4, 1 << 20}};

struct jupyter {
    struct sandbox *sandbox;
    pid_t pid;
    char name[80], base[32]; /* of the kernelspec; of its files */
    char key[JUPYTER_KEY_SIZE], session[JUPYTER_KEY_SIZE];
    bool by_message;
    struct jupyter_pictures pictures;
    struct jupyter_link links[SOCKETS];
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

static int connect_one(struct jupyter *jupyter, size_t i, int64_t until_ms)
{
    AUTO_CLOSE int file = find_socket(jupyter, sockets[i].number);
    return file < 0 ? -EAGAIN : jupyter_link_connect(&jupyter->links[i], file, sockets[i].type, until_ms);
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
        jupyter->watches[i] =
            loop_watch(fiber_loop(), jupyter->links[i].fd, EPOLLIN, on_message, fiber_current());
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

/* What is there, or as much as a turn has room for: what is left wakes the fiber again. False: the
 * kernel has closed a socket. */
static bool drain(struct jupyter *jupyter, struct exchange *exchange)
{
    bool is_open = true;
    size_t budget = TURN_BYTES;
    for (size_t i = 0; i < SOCKETS; i++) {
        struct jupyter_message message;
        int code;
        while ((code = jupyter_receive(&jupyter->links[i], jupyter->key, &budget, &message)) == 1) {
            hear(exchange, i, &message);
            jupyter_message_finish(&message);
        }
        is_open &= code == 0;
    }
    return is_open;
}

/* 1: answered and idle; 0: not by until_ms; -EPIPE: the kernel ended; other negative errno. */
static int await_exchange(struct jupyter *jupyter, struct exchange *exchange, int64_t until_ms,
                          int *status, struct fail *fail)
{
    for (;;) {
        bool is_open = drain(jupyter, exchange);
        if (exchange->is_answered && exchange->is_idle)
            return 1;
        int ended = jupyter->pid > 0 ? sandbox_poll_exit(jupyter->sandbox, jupyter->pid, status, fail) : 1;
        if (ended == 1)
            jupyter->pid = 0;
        if (ended != 0 || !is_open)
            return ended < 0 ? ended : -EPIPE;
        if (loop_now_ms() >= until_ms)
            return 0;
        int code = await_until(until_ms, fail);
        if (code < 0)
            return code;
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
    unlinkat(sandbox_outputs_dir(jupyter->sandbox), name, 0); /* the name is ours, whoever took it */
    AUTO_CLOSE int fd = openat(sandbox_outputs_dir(jupyter->sandbox), name,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (!text || fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return fail_set(fail, text ? sandbox_outputs_code(errno) : -ENOMEM, "the connection file: %s",
                        strerror(errno));
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
    return code;
}

/* Connects to what the kernel binds, as it appears. 0, -EINVAL when it ends instead. */
static int connect_all(struct jupyter *jupyter, int64_t until_ms, struct fail *fail)
{
    for (size_t i = 0; i < SOCKETS; i++) {
        int status, code;
        while ((code = connect_one(jupyter, i, until_ms)) == -EAGAIN) {
            int ended = sandbox_poll_exit(jupyter->sandbox, jupyter->pid, &status, fail);
            if (ended == 1)
                jupyter->pid = 0;
            if (ended < 0 || ended == 1 || loop_now_ms() >= until_ms)
                return ended < 0 ? ended
                                 : fail_set(fail, -EINVAL, "the Jupyter kernel %s does not start", jupyter->name);
            int late = await_sleep(LOOK_EVERY_MS);
            if (late < 0)
                return fail_set(fail, late, late == -ECANCELED ? "cancelled" : "out of time");
        }
        if (code == -EPROTO)
            return fail_set(fail, -EINVAL, "the Jupyter kernel %s does not answer", jupyter->name);
        if (code < 0)
            return fail_set(fail, code, "the sockets of the Jupyter kernel: %s", strerror(-code));
    }
    return 0;
}

/* Asks until both sockets have answered. */
static int shake_hands(struct jupyter *jupyter, int64_t until_ms, struct fail *fail)
{
    json_t *nothing = json_object();
    int news = 0, status;
    while (news == 0 && loop_now_ms() < until_ms) {
        struct exchange exchange = {0};
        jupyter_send(&jupyter->links[SHELL], jupyter->key, jupyter->session, "kernel_info_request",
                     nothing, exchange.id);
        news = watch_exchange(jupyter, &exchange, loop_now_ms() + ASK_EVERY_MS, &status, fail);
    }
    json_decref(nothing);
    if (news == 0 || news == -EPIPE)
        return fail_set(fail, -EINVAL, "the Jupyter kernel %s does not answer", jupyter->name);
    return news < 0 ? news : 0;
}

int jupyter_open(struct sandbox *sandbox, const char *spec, struct jupyter **ret, struct fail *fail)
{
    struct jupyter *jupyter = calloc(1, sizeof(*jupyter));
    int64_t until_ms = loop_now_ms() + START_MS;
    if (!jupyter)
        return fail_set(fail, -ENOMEM, "out of memory");
    jupyter->sandbox = sandbox;
    for (size_t i = 0; i < SOCKETS; i++)
        jupyter_link_init(&jupyter->links[i], sockets[i].message_max);
    snprintf(jupyter->name, sizeof(jupyter->name), "%.79s", spec);
    snprintf(jupyter->base, sizeof(jupyter->base), "jupyter%lu",
             (unsigned long)sandbox_next_number(sandbox));
    jupyter->pictures = (struct jupyter_pictures){.sandbox = sandbox, .base = jupyter->base};
    jupyter_random(jupyter->key);
    jupyter_random(jupyter->session);
    int code = launch(jupyter, fail);
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
    for (size_t i = 0; i < SOCKETS; i++)
        jupyter_link_finish(&it->links[i]);
    free(it);
}

/* ---- a cell -------------------------------------------------------------------------- */

/* What was too large to be looked at is not silently gone. */
static void note_passed_over(struct jupyter *jupyter, struct output *output)
{
    char note[96];
    uint64_t count = 0;
    for (size_t i = 0; i < SOCKETS; i++) {
        count += jupyter->links[i].passed_over;
        jupyter->links[i].passed_over = 0;
    }
    int len = snprintf(note, sizeof(note), "[left out, as too large or broken: %llu of the kernel's messages]\n",
                       (unsigned long long)count);
    if (count > 0)
        output_append(output, note, (size_t)len);
}

static int interrupt(struct jupyter *jupyter, struct fail *fail)
{
    char id[JUPYTER_KEY_SIZE];
    if (!jupyter->by_message)
        return sandbox_signal_tree(jupyter->sandbox, jupyter->pid, SIGINT, fail);
    json_t *nothing = json_object();
    jupyter_send(&jupyter->links[CONTROL], jupyter->key, jupyter->session, "interrupt_request", nothing, id);
    json_decref(nothing);
    return 0;
}

static int execute(struct jupyter *jupyter, const char *code, struct exchange *exchange)
{
    json_t *content = json_pack("{s:s, s:b, s:b, s:{}, s:b, s:b}", "code", code, "silent", 0,
                                "store_history", 1, "user_expressions", "allow_stdin", 0,
                                "stop_on_error", 0); /* or the next one may be aborted, too */
    bool sent = content && jupyter_send(&jupyter->links[SHELL], jupyter->key, jupyter->session,
                                        "execute_request", content, exchange->id);
    json_decref(content);
    return sent ? 0 : -EPIPE;
}

static int run(struct jupyter *jupyter, const char *code, int64_t timeout_ms,
               struct exchange *exchange, struct ipython_result *ret, struct fail *fail)
{
    int status = 0, news = execute(jupyter, code, exchange);
    if (news == 0)
        news = watch_exchange(jupyter, exchange, loop_now_ms() + timeout_ms, &status, fail);
    if (news == 0) {
        ret->timed_out = true;
        news = interrupt(jupyter, fail);
        if (news == 0)
            news = watch_exchange(jupyter, exchange, loop_now_ms() + RETURN_MS, &status, fail);
    }
    if (news < 0 && news != -EPIPE)
        return news;
    note_passed_over(jupyter, exchange->output);
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
