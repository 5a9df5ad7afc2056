/* chat.c - the agent that answers once: one turn, no tools. */
#include "workers/agents/agents.h"
#include "workers/agents/conversation/dialogue.h"
#include "workers/agents/ends.h"

static enum outcome chat_run(struct agent_run *run)
{
    struct dialogue dialogue;
    struct fail fail = {0};
    int error = dialogue_open(&dialogue, run, NULL, &fail);
    if (error == 0)
        error = dialogue_sample(&dialogue, &fail);
    enum outcome outcome =
        error == 0 && dialogue.is_cut
            ? agent_end_by(run, END_LENGTH, "the answer was cut at %zu tokens in all",
                        dialogue.ids.count)
            : dialogue_end(&dialogue, error, &fail);
    dialogue_close(&dialogue);
    return outcome;
}

const struct agent agent_chat = {
    .name = "chat",
    .doc = "one answer, no tools",
    .needs_engine = true,
    .run = chat_run,
};
