/* none.c - the agent that does nothing: samples no token and leaves the files as they are. */
#include "workers/agents/ends.h"
#include "workers/agents/kinds/agents.h"
#include "workers/agents/conversation/conversation.h"

static enum outcome none_run(struct agent_run *run) { return agent_end(run, OUTCOME_OK, "no agent"); }

const struct agent agent_none = {
    .name = "none",
    .doc = "samples nothing and leaves the files as they are",
    .run = none_run,
};
