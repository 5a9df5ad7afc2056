#include "workers/tools/ipython/ipython.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/sandbox.h"
#include "common/base/text.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/ipython/kernel.h"

enum {
    RETURN_MS = 2000, /* after an interrupt: a first traceback is slow on a busy machine */
    STRAYS_MAX = 64,  /* answers to other cells, as processes that a cell forked may give */
};

struct ipython {
    struct kernel kernel;
    uint64_t last_id;
};

/* How a cell ended. */
struct ending {
    enum driver_news news;
    int status; /* of a kernel that ended */
    bool timed_out, interrupted, failed;
    uint64_t count;
    size_t images;
};

/* ---- life --------------------------------------------------------------------------- */

/* spec: NULL, or a Jupyter kernel's. */
static int open_kernel(struct sandbox *sandbox, const char *spec, struct ipython **ret, struct fail *fail)
{
    struct ipython *ipython = calloc(1, sizeof(*ipython));
    if (!ipython)
        return fail_memory(fail);
    if (spec)
        kernel_init_jupyter(&ipython->kernel, sandbox, spec);
    else
        kernel_init(&ipython->kernel, sandbox);
    int code = kernel_start(&ipython->kernel, fail);
    if (code < 0)
        ipython_close(&ipython);
    else
        *ret = ipython;
    return code;
}

int ipython_open(struct sandbox *sandbox, struct ipython **ret, struct fail *fail)
{
    return open_kernel(sandbox, NULL, ret, fail);
}

int ipython_open_jupyter(struct sandbox *sandbox, const char *spec, struct ipython **ret, struct fail *fail)
{
    return open_kernel(sandbox, spec, ret, fail);
}

void ipython_close(struct ipython **ipython)
{
    if (!*ipython)
        return;
    kernel_finish(&(*ipython)->kernel);
    free(take_ptr(ipython));
}

int ipython_restart(struct ipython *ipython, struct fail *fail)
{
    int code = driver_kill(&ipython->kernel.driver, fail);
    return code < 0 ? code : kernel_start(&ipython->kernel, fail);
}

const char *ipython_about(const struct ipython *ipython) { return ipython->kernel.about; }
const char *ipython_jupyter(const struct ipython *ipython) { return ipython->kernel.jupyter; }

/* ---- a cell ------------------------------------------------------------------------- */

static bool send_cell(struct ipython *ipython, const char *code)
{
    json_t *message = json_pack("{s:I, s:s}", "id", (json_int_t)++ipython->last_id, "code", code);
    bool sent = message && driver_send(&ipython->kernel.driver, message);
    json_decref(message);
    return sent;
}

/* Whether the message answers the cell; then what it says. */
static bool take_answer(const struct ipython *ipython, const json_t *message, struct ending *ret)
{
    json_int_t id = 0, count = 0, images = 0;
    const char *status = "";
    if (json_unpack((json_t *)(uintptr_t)message, "{s:I, s:s, s:I, s:I}", "id", &id, "status", &status, "count", &count,
                    "images", &images) < 0 ||
        id != (json_int_t)ipython->last_id)
        return false;
    ret->interrupted = strcmp(status, "interrupted") == 0;
    ret->failed = strcmp(status, "ok") != 0;
    ret->count = count > 0 ? (uint64_t)count : 0;
    ret->images = images > 0 ? (size_t)images : 0;
    return true;
}

static int await_answer(struct ipython *ipython, int64_t until_ms, struct ending *ret, struct fail *fail)
{
    for (size_t strays = 0; strays < STRAYS_MAX; strays++) {
        json_t *message;
        int news = driver_await(&ipython->kernel.driver, until_ms, &message, &ret->status, fail);
        if (news < 0)
            return news;
        ret->news = (enum driver_news)news;
        if (news != DRIVER_SAID)
            return 0;
        bool ours = take_answer(ipython, message, ret);
        json_decref(message);
        if (ours)
            return 0;
        int code = await_turn(fail); /* it was somebody else's, and there may be more at once */
        if (code < 0)
            return code;
    }
    ret->news = DRIVER_BROKEN;
    return 0;
}

static int await_ending(struct ipython *ipython, int64_t timeout_ms, struct ending *ret, struct fail *fail)
{
    int code = await_answer(ipython, loop_now_ms() + timeout_ms, ret, fail);
    if (code < 0 || ret->news != DRIVER_SILENT)
        return code;
    ret->timed_out = true;
    code = sandbox_signal_tree(ipython->kernel.driver.sandbox, ipython->kernel.driver.pid, SIGINT, fail);
    return code < 0 ? code : await_answer(ipython, loop_now_ms() + RETURN_MS, ret, fail);
}

/* A kernel is there, if one can be: it may have died between the cells. */
static int order(struct ipython *ipython, const char *code, bool *is_new, struct fail *fail)
{
    int result = sandbox_check(ipython->kernel.driver.sandbox, fail);
    if (result < 0 || send_cell(ipython, code))
        return result;
    *is_new = true;
    result = ipython_restart(ipython, fail);
    if (result == 0 && !send_cell(ipython, code))
        result = fail_set(fail, -ENOEXEC, "the kernel does not listen");
    return result;
}

/* ---- words -------------------------------------------------------------------------- */

static void describe_death(const struct ending *ending, char *text, size_t size)
{
    if (ending->timed_out)
        snprintf(text, size, "did not stop when interrupted and was killed");
    else if (ending->news == DRIVER_BROKEN)
        snprintf(text, size, "said what nobody understands and was killed");
    else if (ending->status >= 256)
        snprintf(text, size, "was killed by signal %d", ending->status - 256);
    else
        snprintf(text, size, "ended with status %d", ending->status);
}

/* After the cell took its kernel down: the next one, and a line about it. */
static int replace(struct ipython *ipython, const struct ending *ending, char *note, size_t size, struct fail *fail)
{
    char death[96];
    describe_death(ending, death, sizeof(death));
    int code = ipython_restart(ipython, fail);
    if (code == 0)
        snprintf(note, size, "[the kernel %s; a new one runs, and all variables are gone]\n", death);
    else if (code == -ENOEXEC)
        snprintf(note, size, "[the kernel %s, and no new one starts: %.300s]\n", death, fail->text);
    return code == -ENOEXEC ? 0 : code;
}

static int run(struct ipython *ipython, const char *cell, int64_t timeout_ms, struct output *output,
               struct ipython_result *ret, struct fail *fail)
{
    struct ending ending = {0};
    char note[512] = "";
    int code = order(ipython, cell, &ret->is_new, fail);
    if (ret->is_new && code == 0)
        buffer_append_str(&output->head, "[the kernel had ended; a new one runs, and all variables are gone]\n");
    if (code == -ENOEXEC) { /* the agent's doing: the rollout goes on */
        ret->failed = true;
        return buffer_printf(&output->head, "[no kernel starts: %.300s]\n", fail->text) ? 0 : -ENOMEM;
    }
    if (code == 0)
        code = await_ending(ipython, timeout_ms, &ending, fail);
    if (code < 0)
        return code;
    driver_collect(&ipython->kernel.driver, output);
    ret->total = output->total;
    ret->timed_out = ending.timed_out;
    ret->failed = ending.failed || ending.timed_out || ending.news != DRIVER_SAID;
    ret->count = ending.count;
    ret->images = ending.images;
    if (ending.news != DRIVER_SAID) {
        ret->is_new = true;
        code = replace(ipython, &ending, note, sizeof(note), fail);
    } else if (ending.timed_out) {
        snprintf(note, sizeof(note), "[interrupted after %.1f seconds; variables are kept]\n",
                 (double)timeout_ms / 1000);
    }
    output_append(output, note, strlen(note));
    return code;
}

static void repair(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = '?';
    text_repair(text);
}

int ipython_run(struct ipython *ipython, const char *cell, int64_t timeout_ms, size_t output_max,
                struct ipython_result *ret, struct fail *fail)
{
    struct output output;
    int64_t began_us = clock_us();
    struct sandbox *sandbox = ipython->kernel.driver.sandbox;
    *ret = (struct ipython_result){0};
    sandbox_hold(sandbox);
    output_init(&output, output_max);
    int code = run(ipython, cell, timeout_ms, &output, ret, fail);
    if (code < 0) {
        sandbox_kill_all_later(sandbox); /* the next one finds a new kernel */
        kernel_finish(&ipython->kernel);
    }
    sandbox_release(sandbox);
    if (code < 0) {
        output_finish(&output);
        return code;
    }
    ret->seconds = (double)(clock_us() - began_us) / 1e6;
    ret->text = output_take(&output, &ret->len);
    if (ret->text)
        repair(ret->text, ret->len);
    return ret->text ? 0 : fail_memory(fail);
}
