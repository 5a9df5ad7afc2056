/*
 * handler_run_world.h - a run with handlers beside a scripted engine: an agent, built in or a handler's, over one task,
 * in the sandbox of the host's image, with the tools that handlers offer.
 */
#ifndef SLUICE_TESTS_WORKERS_HANDLERS_HANDLER_RUN_WORLD_H
#define SLUICE_TESTS_WORKERS_HANDLERS_HANDLER_RUN_WORLD_H

#include "tests/workers/agents/agent_world.h"

#include "tests/workers/handlers/handler_world.h"
#include "workers/handlers/roles/tool.h"

static struct world world;
static bool attempt_opened; /* the last run had a sandbox at its end */

/* The handlers of a run worker and a scripted engine; in a fiber. */
static inline void open_run_world(const char *script)
{
    const char *const text = "mine=%s";
    start_handlers(STAGE_RUN, 1, &text, 1);
    wait_for_offers();
    world_open_on(&world, loop, script, NULL);
}

/* Another engine, whose log is empty. */
static inline void renew_engine(const char *script)
{
    world_close(&world);
    world_open_on(&world, loop, script, NULL);
}

static inline int tear_down_run_world(void **state)
{
    world_close(&world);
    return tear_down_handlers(state);
}

static inline int open_host_later(struct agent_run *run, struct fail *fail)
{
    (void)fail;
    run->sandbox = open_host();
    return 0;
}

static inline void run_as_it_stands(const struct agent *agent, struct attempt *attempt, const char *json)
{
    struct job job = {.context = &context};
    struct handler_tools tools;
    job.task = attempt->task = parse_task(json);
    job.start.task = slice_from_str(json);
    job.start.group = slice_from_str("g");
    record_init(&attempt->record);
    handler_tools_init(&tools, &job);
    attempt->run = (struct agent_run){.task = attempt->task,
                                      .engine = task_needs_engine(job.task) ? world_engine(&world) : NULL,
                                      .sandbox = agent->needs_sandbox ? open_host() : NULL,
                                      .open_sandbox = open_host_later,
                                      .tools = &tools.source,
                                      .job = &job,
                                      .record = &attempt->record};
    tools.run = &attempt->run;
    fiber_push_deadline(loop_now_ms() + (int64_t)attempt->task->limits.run_s * 1000);
    attempt->outcome = agent->run(&attempt->run);
    fiber_pop_deadline();
    attempt->run.job = NULL;
    handler_tools_finish(&tools);
    attempt_opened = attempt->run.sandbox != NULL;
    sandbox_close(&attempt->run.sandbox);
}

/* Runs the agent over the task, whose JSON has ' for ". */
static inline void run_with_handlers(const struct agent *agent, struct attempt *attempt)
{
    static char json[8192];
    snprintf(json, sizeof(json), "%s", attempt->json);
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    run_as_it_stands(agent, attempt, json);
}

#define HANDLER_RUN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_run_world)

#endif
