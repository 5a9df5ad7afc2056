#include "workers/tools/ipython/kernel.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/inside/inside.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/requests.h"

enum {
    START_MS = 60000, /* a cold image on a slow file system */
    FORK_MS = 10000,  /* for the fork server: it may be importing still */
};

static const struct program ipython_driver = {"ipython_driver.py", ipython_driver_py, &ipython_driver_py_len},
                            jupyter_driver = {"jupyter_driver.py", jupyter_driver_py, &jupyter_driver_py_len};

void kernel_init(struct kernel *kernel, struct sandbox *sandbox)
{
    *kernel = (struct kernel){0};
    driver_init(&kernel->driver, sandbox);
}

void kernel_init_jupyter(struct kernel *kernel, struct sandbox *sandbox, const char *spec)
{
    kernel_init(kernel, sandbox);
    snprintf(kernel->jupyter, sizeof(kernel->jupyter), "%.64s", spec);
}

void kernel_finish(struct kernel *kernel)
{
    driver_finish(&kernel->driver);
    kernel->is_forked = false;
}

static int execute(struct kernel *kernel, int its_end, struct fail *fail)
{
    if (*kernel->jupyter == '\0')
        return driver_execute(&kernel->driver, &ipython_driver, NULL, its_end, fail);
    int code = driver_install(kernel->driver.sandbox, &ipython_driver, fail); /* the other one imports it */
    return code < 0 ? code : driver_execute(&kernel->driver, &jupyter_driver, kernel->jupyter, its_end, fail);
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
    driver_collect(&kernel->driver, &said);
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
    int news = driver_await(&kernel->driver, loop_now_ms() + START_MS, &hello, &status, fail);
    if (news == DRIVER_SAID) {
        note_about(kernel, hello);
        json_decref(hello);
        return 0;
    }
    if (news == DRIVER_ENDED)
        return explain_end(kernel, status, fail);
    return news < 0 ? news
                    : fail_set(fail, -ENOEXEC, "%s%s does not become ready",
                               *kernel->jupyter ? "the Jupyter kernel " : "python3", kernel->jupyter);
}

/* By the fork server: 1 when it is ready; 0: it must be started the other way; negative errno. */
static int fork_one(struct kernel *kernel, struct fail *fail)
{
    json_t *hello = NULL;
    int status, end = -1, code = driver_make_ends(&kernel->driver, &end, fail);
    AUTO_CLOSE int its_end = end;
    if (code < 0)
        return code;
    if (sandbox_fork_kernel(kernel->driver.sandbox, (int[]){its_end, kernel->driver.output}, fail) < 0)
        return sandbox_check(kernel->driver.sandbox, fail);
    cleanup_close(&its_end); /* or its death would not be heard of */
    its_end = -1;
    int news = driver_await(&kernel->driver, loop_now_ms() + FORK_MS, &hello, &status, fail);
    pid_t pid = (pid_t)json_integer_value(json_object_get(hello, "pid"));
    if (pid > 1 && (code = sandbox_adopt(kernel->driver.sandbox, pid, fail)) == 0) {
        kernel->driver.pid = pid;
        kernel->is_forked = true;
        note_about(kernel, hello);
    }
    json_decref(hello);
    return news < 0 ? news : kernel->driver.pid > 0 ? 1 : code == -ESRCH ? 0 : code;
}

int kernel_start_here(struct kernel *kernel, struct fail *fail)
{
    kernel_finish(kernel);
    int end = -1, code = driver_make_ends(&kernel->driver, &end, fail);
    AUTO_CLOSE int its_end = end;
    if (code == 0)
        code = execute(kernel, its_end, fail);
    cleanup_close(&its_end);
    its_end = -1;
    if (code == 0)
        code = await_ready(kernel, fail);
    if (code < 0 && kernel->driver.pid > 0)
        sandbox_kill_tree_later(kernel->driver.sandbox, kernel->driver.pid);
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
