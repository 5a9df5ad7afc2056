/*
 * harness.c - the agent that is a program of somebody else's: it works in the sandbox, and the model that it speaks to
 * over HTTP is this rollout's (proxy.h). It ends with the program, or with a budget of the task: what it asks then is
 * refused, and after a little while its processes are killed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/agents/ends.h"
#include "workers/agents/harnesses/programs.h"
#include "workers/agents/kinds/agents.h"
#include "workers/files/file_give.h"
#include "workers/agents/proxy/http/server.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/command.h"

enum { GRACE_MS = 5000, OUTPUT_MAX = 256 << 10, TAIL_MAX = 400, LISTENER_HELD_MAX = 2 * SERVER_HELD_MAX };

struct harness {
    struct agent_run *run;
    struct fiber *fiber; /* the agent's */
    struct proxy proxy;
    struct http_listener *listener; /* in the sandbox */
    struct server *server;
    char *script;
    struct fiber *program; /* NULL: it has ended */
    struct sandbox_output output;
    int error; /* of the sandbox, while it ran */
    struct fail fail;
};

/* ---- the program --------------------------------------------------------------------------------- */

static void run_program(void *arg)
{
    struct harness *harness = arg;
    harness->error = sandbox_command(harness->run->sandbox, harness->script, INT32_MAX, OUTPUT_MAX, &harness->output,
                                     &harness->fail);
}

static void on_end(void *arg)
{
    struct harness *harness = arg;
    harness->program = NULL;
    fiber_wake(harness->fiber);
}

static int write_files(struct harness *harness, struct fail *fail)
{
    const struct task *task = harness->run->task;
    AUTO_BUFFER script = {0}, prompt = {0};
    program_write(task, harness->proxy.model.context_tokens, &script);
    program_write_prompt(task, &prompt);
    harness->script = buffer_take_str(&script);
    if (!harness->script || prompt.failed)
        return fail_memory(fail);
    const int dir = sandbox_commands_dir(harness->run->sandbox);
    unlinkat(dir, PROGRAM_PROMPT, 0); /* of the step before */
    return file_give(dir, PROGRAM_PROMPT, 0444, buffer_peek(&prompt), fail);
}

/* ---- until it ends ---------------------------------------------------------------------------------- */

static bool is_over(const struct harness *harness)
{
    return harness->proxy.error != 0 || harness->proxy.over != PROXY_GOES_ON;
}

/*
 * Until the program has ended, or the model's part is over and it has had the time to notice. Its own deadline may have
 * moved while it slept: time in which an engine was paused is given back.
 */
static int await_program(struct harness *harness)
{
    int64_t kill_ms = 0;
    while (harness->program) {
        if (!is_over(harness))
            kill_ms = 0; /* it found a shorter prompt */
        else if (kill_ms == 0)
            kill_ms = loop_now_ms() + (harness->proxy.error != 0 ? 0 : GRACE_MS);
        const int64_t left_ms = kill_ms == 0 ? -1 : kill_ms - loop_now_ms();
        if (kill_ms != 0 && left_ms <= 0)
            return 0;
        const int error = await_wake(left_ms);
        if (error == -ECANCELED || (error == -ETIMEDOUT && fiber_is_late()))
            return error;
    }
    return 0;
}

/* What it starts dies with it. */
static void kill_program(struct harness *harness)
{
    fiber_shield(true);
    fiber_lift_deadline(0);
    if (harness->program)
        fiber_cancel(harness->program);
    while (harness->program)
        await_wake(-1);
    fiber_pop_deadline();
    fiber_shield(false);
}

static void on_turn(void *arg)
{
    struct harness *harness = arg;
    fiber_wake(harness->fiber);
}

/* Who connects is this rollout. */
static void find_server(void *arg, const char *url, struct listener_found *ret)
{
    const struct harness *harness = arg;
    (void)url;
    ret->server = harness->server;
}

static bool listen_inside(struct harness *harness)
{
    struct agent_run *run = harness->run;
    harness->listener = listener_open(fiber_loop(), &(struct listener_plan){.fd = run->take_listener(run),
                                                                            .connections_max = SERVER_CLIENTS_MAX,
                                                                            .held_max = LISTENER_HELD_MAX,
                                                                            .find = find_server,
                                                                            .arg = harness});
    if (harness->listener)
        harness->server = server_open(&(struct server_plan){
            .listener = harness->listener, .proxy = &harness->proxy, .changed = on_turn, .arg = harness});
    return harness->server != NULL;
}

static int work(struct harness *harness, struct fail *fail)
{
    int error = write_files(harness, fail);
    if (error < 0)
        return error;
    if (listen_inside(harness))
        harness->program = fiber_start(fiber_loop(), run_program, on_end, harness);
    error = harness->program ? await_program(harness) : fail_memory(fail);
    kill_program(harness);
    server_close(&harness->server);
    listener_close(&harness->listener);
    return error;
}

/* ---- how it ended -------------------------------------------------------------------------------------- */

static enum outcome end_over(const struct harness *harness)
{
    static const enum end ends[] = {[PROXY_OVER_TURNS] = END_TURNS, [PROXY_OVER_TOKENS] = END_TOKENS};
    const struct proxy *proxy = &harness->proxy;
    return proxy->over == PROXY_OVER_CONTEXT ? model_end(&proxy->model, -E2BIG, &proxy->fail)
                                             : agent_end_by(harness->run, ends[proxy->over], "%s", proxy->fail.text);
}

/* A program that never asked its model has not worked: it is not there, or does not start. One of which the model's
 * template takes nothing does not go with that model. */
static enum outcome end_program(const struct harness *harness)
{
    struct agent_run *run = harness->run;
    const int status = harness->output.status;
    const struct slice tail = text_tail_slice(slice_from_str(harness->output.text), TAIL_MAX);
    if (harness->proxy.requests == 0 && status != 0)
        return agent_end(run, OUTCOME_TASK, "the harness %s ended with %d and never asked its model: %.*s",
                         run->task->agent_harness, status, SLICE_ARG(tail));
    if (harness->proxy.model.turns == 0 && harness->proxy.refused.code < 0)
        return agent_end(run, OUTCOME_TASK, "the harness %s ended with %d without a turn: %s", run->task->agent_harness,
                         status, harness->proxy.refused.text);
    return agent_end(run, OUTCOME_OK, "the harness ended with %d after %zu turns", status, harness->proxy.model.turns);
}

static enum outcome end(struct harness *harness, int error, const struct fail *fail)
{
    const struct proxy *proxy = &harness->proxy;
    if (error < 0)
        return model_end(&proxy->model, error, fail);
    if (proxy->error != 0)
        return model_end(&proxy->model, proxy->error, &proxy->fail);
    if (proxy->over != PROXY_GOES_ON)
        return end_over(harness);
    if (harness->error < 0)
        return agent_failed(harness->run, BLAME_AGENT, agent_what(harness->run, harness->error), &harness->fail);
    return end_program(harness);
}

static bool keep_output(struct harness *harness)
{
    const struct sandbox_output *output = &harness->output;
    return !output->text || record_say(harness->run->record, "note", slice_of(output->text, output->len),
                                       harness->run->task->agent_harness, output->status);
}

static enum outcome harness_run(struct agent_run *run)
{
    struct fail fail = {0};
    struct harness *harness = calloc(1, sizeof(*harness));
    if (!harness)
        return agent_end(run, OUTCOME_INFRA, "out of memory");
    harness->run = run;
    harness->fiber = fiber_current();
    int error = proxy_open(&harness->proxy, run, &fail);
    if (error == 0)
        error = work(harness, &fail);
    error = proxy_settle(&harness->proxy, error, &fail);
    enum outcome outcome = end(harness, error, &fail);
    if (!proxy_record(&harness->proxy) || !keep_output(harness))
        outcome = agent_end(run, OUTCOME_INFRA, "out of memory, or the record is full");
    proxy_close(&harness->proxy);
    free(harness->output.text);
    free(harness->script);
    free(harness);
    return outcome;
}

const struct agent agent_harness = {
    .name = "harness",
    .doc = "any program, unmodified, that speaks to its model over HTTP",
    .needs_engine = true,
    .needs_sandbox = true,
    .run = harness_run,
};
