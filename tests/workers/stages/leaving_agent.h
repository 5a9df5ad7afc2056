/* leaving_agent.h - a scripted agent, over kinds_world.h, whose processes live on when it has ended. */
#ifndef SLUICE_TESTS_WORKERS_STAGES_LEAVING_AGENT_H
#define SLUICE_TESTS_WORKERS_STAGES_LEAVING_AGENT_H

#include "tests/workers/stages/kinds_world.h"

#include "workers/sandbox/requests.h"

/* Its prompt is a command, of which nothing is killed at its end: what the agent leaves at work. */
static enum outcome run_leaving(struct agent_run *run)
{
    pid_t pid;
    struct fail fail = {0};
    const char *argv[] = {"/bin/bash", "-c", run->task->messages[0].content, NULL};
    struct sandbox_exec exec = {.argv = argv};
    int code = sandbox_start(run->sandbox, &exec, &pid, &fail);
    if (code == 0)
        code = sandbox_wait(run->sandbox, pid, &fail);
    record_say(run->record, "user", slice_from_str(run->task->messages[0].content), NULL, 0);
    run->answer = strdup("my last words");
    snprintf(run->detail, sizeof(run->detail), "%s", code < 0 ? fail.text : "ended by itself");
    return code == -ETIMEDOUT ? OUTCOME_AGENT : OUTCOME_OK;
}

#endif
