/* ipython_tool.c - the tool `ipython`: one kernel (ipython.h) a rollout, kept from call to call, and
 * beside it one Jupyter kernel where a call names one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workers/tools/arguments.h"
#include "workers/tools/ipython/ipython.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

struct kernels {
    struct sandbox *sandbox;
    struct ipython *ipython;
    struct ipython *jupyter; /* NULL: none */
};

static void close_kernels(void *state)
{
    struct kernels *kernels = state;
    ipython_close(&kernels->ipython);
    ipython_close(&kernels->jupyter);
    free(kernels);
}

static int open_kernels(struct toolbox *box, void **ret_state, struct fail *fail)
{
    struct kernels *kernels = calloc(1, sizeof(*kernels));
    if (!kernels)
        return fail_memory(fail);
    kernels->sandbox = box->sandbox;
    int code = ipython_open(box->sandbox, &kernels->ipython, fail);
    if (code < 0)
        close_kernels(kernels);
    else
        *ret_state = kernels;
    return code;
}

/* The Jupyter kernel `name`, a new one if that is not the one that runs. */
static int have_jupyter(struct kernels *kernels, const char *name, bool anew, struct fail *fail)
{
    if (kernels->jupyter && (anew || strcmp(ipython_jupyter(kernels->jupyter), name) != 0))
        ipython_close(&kernels->jupyter);
    return kernels->jupyter ? 0 : ipython_open_jupyter(kernels->sandbox, name, &kernels->jupyter, fail);
}

static int tell(const struct ipython_result *cell, struct tool_result *ret, struct fail *fail)
{
    ret->is_error = cell->failed;
    ret->status = cell->failed;
    ret->timed_out = cell->timed_out;
    ret->total = cell->total;
    ret->images = cell->images;
    return tool_say(ret, fail, "%s", cell->len ? cell->text : "(no output)");
}

static int run_cell(struct toolbox *box, struct ipython *kernel, const json_t *arguments, struct tool_result *ret,
                    struct fail *fail)
{
    struct ipython_result cell = {0};
    const char *text = tool_string(arguments, "code");
    int64_t limit_s = (int64_t)box->limits->command_s;
    int64_t timeout_s = tool_integer(arguments, "timeout_s", limit_s);
    int64_t timeout_ms = (timeout_s < limit_s ? timeout_s : limit_s) * 1000;
    size_t most = box->limits->output_bytes;
    int code = ipython_run(kernel, text, timeout_ms, most, &cell, fail);
    if (code == 0) {
        struct sandbox_output counted = {.total = cell.total, .timed_out = cell.timed_out};
        sandbox_count_command(box->sandbox, &counted, most);
        code = tell(&cell, ret, fail);
    }
    free(cell.text);
    return code;
}

static int call(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret, struct fail *fail)
{
    struct kernels *kernels = state;
    const char *code = tool_string(arguments, "code"), *name = tool_string(arguments, "kernel");
    bool restart = tool_boolean(arguments, "restart");
    int result = 0;
    if (!code && !restart)
        return tool_refuse(ret, fail, "Give code to run, or restart.");
    if (name)
        result = have_jupyter(kernels, name, restart, fail);
    else if (restart)
        result = ipython_restart(kernels->ipython, fail);
    if (result == -ENOEXEC) /* there is none of that name, or the agent has broken what it needs */
        return tool_refuse(ret, fail, "No kernel starts: %.300s", fail->text);
    if (result < 0)
        return result;
    if (code)
        return run_cell(box, name ? kernels->jupyter : kernels->ipython, arguments, ret, fail);
    return tool_say(ret, fail, "A new kernel runs (%s).", name ? name : ipython_about(kernels->ipython));
}

const struct tool tool_ipython = {
    .name = "ipython",
    .doc = "Runs a cell of Python in an IPython kernel that keeps its variables from call to call, in "
           "the working directory. Shows what the cell prints and the value of its last line; magics, await and "
           "!commands work; pictures are saved as files that the text names. Standard input is empty.",
    .needs_sandbox = true,
    .arguments = {{"code", TOOL_STRING, false, 0, 262144, NULL, "The cell."},
                  {"timeout_s", TOOL_INTEGER, false, 1, 86400, NULL,
                   "Seconds after which the cell is interrupted, and killed if it goes on."},
                  {"restart", TOOL_BOOLEAN, false, 0, 0, NULL, "Start a new kernel first: all variables are gone."},
                  {"kernel", TOOL_STRING, false, 1, 64, NULL,
                   "The name of a Jupyter kernel of the machine to run the cell in instead, for other "
                   "languages; it keeps its own variables."}},
    .open = open_kernels,
    .call = call,
    .close = close_kernels,
};
