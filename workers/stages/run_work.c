#include "workers/stages/run_work.h"

#include "workers/handlers/roles/tool.h"

enum outcome run_work(struct agent_run *run, const struct agent *agent)
{
    struct handler_tools tools;
    handler_tools_init(&tools, run->job);
    tools.run = run;
    run->tools = &tools.source;
    const enum outcome outcome = agent->run(run);
    run->tools = NULL;
    handler_tools_finish(&tools);
    return outcome;
}
