/* chat.c - the agent that answers once: one turn, no tools. */
#include "workers/agents/kinds/agents.h"
#include "workers/agents/conversation/conversation.h"
#include "workers/agents/ends.h"

static enum outcome chat_run(struct agent_run *run)
{
    struct conversation conversation;
    struct fail fail = {0};
    int error = conversation_open(&conversation, run, NULL, &fail);
    if (error == 0)
        error = conversation_sample(&conversation, &fail);
    enum outcome outcome = error == 0 && conversation.is_cut
                               ? agent_end_by(run, END_LENGTH, "the answer was cut at %zu tokens in all",
                                              conversation.ids.count)
                               : conversation_end(&conversation, error, &fail);
    conversation_close(&conversation);
    return outcome;
}

const struct agent agent_chat = {
    .name = "chat",
    .doc = "one answer, no tools",
    .needs_engine = true,
    .run = chat_run,
};
