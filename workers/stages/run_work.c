#include "workers/stages/run_work.h"

#include "workers/handlers/roles/hook.h"
#include "workers/handlers/roles/tool.h"
#include "workers/runtime/activity.h"

enum outcome run_work(struct agent_run *run, const struct agent *agent)
{
    struct handler_tools tools;
    struct handler_hooks hooks;
    handler_tools_init(&tools, run->job);
    handler_hooks_init(&hooks, run->job, run);
    tools.run = run;
    run->tools = &tools.source;
    run->hooks = &hooks.source;
    activity_enter(PHASE_AGENT);
    const enum outcome outcome = agent->run(run);
    activity_leave(PHASE_AGENT);
    run->tools = NULL;
    run->hooks = NULL;
    handler_tools_finish(&tools);
    return outcome;
}
