/* ipython_tool.c - the tool `ipython`: one kernel (ipython.h) a rollout, kept from call to call. */
#include <errno.h>
#include <stdlib.h>

#include "workers/tools/ipython.h"
#include "workers/tools/tools.h"

static int open_kernel(struct toolbox *box, void **ret_state, struct fail *fail)
{
    return ipython_open(box->sandbox, (struct ipython **)ret_state, fail);
}

static void close_kernel(void *state)
{
    struct ipython *ipython = state;
    ipython_close(&ipython);
}

/* *refused: the agent has broken what a kernel needs. */
static int restart(struct ipython *ipython, bool *refused, struct tool_result *ret,
                   struct fail *fail)
{
    int code = ipython_restart(ipython, fail);
    *refused = code == -EINVAL;
    return *refused ? tool_refuse(ret, fail, "No new kernel starts: %.300s", fail->text) : code;
}

static int run_cell(struct toolbox *box, struct ipython *ipython, const json_t *arguments,
                    struct tool_result *ret, struct fail *fail)
{
    struct ipython_result cell;
    int64_t limit_s = (int64_t)box->limits->command_s;
    int64_t timeout_s = tool_integer(arguments, "timeout_s", limit_s);
    int code = ipython_run(ipython, tool_string(arguments, "code"),
                           (timeout_s < limit_s ? timeout_s : limit_s) * 1000,
                           box->limits->output_bytes, &cell, fail);
    if (code < 0)
        return code;
    ret->is_error = cell.failed;
    ret->status = cell.failed;
    ret->timed_out = cell.timed_out;
    ret->total = cell.total;
    ret->images = cell.images;
    code = tool_say(ret, fail, "%s", cell.len ? cell.text : "(no output)");
    free(cell.text);
    return code;
}

static int call(struct toolbox *box, void *state, const json_t *arguments,
                struct tool_result *ret, struct fail *fail)
{
    const char *code = tool_string(arguments, "code");
    bool refused = false;
    int result = 0;
    if (!code && !tool_boolean(arguments, "restart"))
        return tool_refuse(ret, fail, "Give code to run, or restart.");
    if (tool_boolean(arguments, "restart"))
        result = restart(state, &refused, ret, fail);
    if (result < 0 || refused)
        return result;
    if (code)
        return run_cell(box, state, arguments, ret, fail);
    return tool_say(ret, fail, "A new kernel runs (%s).", ipython_about(state));
}

const struct tool tool_ipython = {
    .name = "ipython",
    .doc = "Runs a cell of Python in an IPython kernel that keeps its variables from call to call, in "
           "/workspace. Shows what the cell prints and the value of its last line; magics, await and "
           "!commands work; pictures are saved as files that the text names. Standard input is empty.",
    .needs_sandbox = true,
    .arguments = {{"code", TOOL_STRING, false, 0, 262144, NULL, "The cell."},
                  {"timeout_s", TOOL_INTEGER, false, 1, 86400, NULL,
                   "Seconds after which the cell is interrupted, and killed if it goes on."},
                  {"restart", TOOL_BOOLEAN, false, 0, 0, NULL,
                   "Start a new kernel first: all variables are gone."}},
    .open = open_kernel,
    .call = call,
    .close = close_kernel,
};
