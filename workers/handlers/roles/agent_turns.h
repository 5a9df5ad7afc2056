/*
 * agent_turns.h - what an agent of a handler asks of the conversation: turns of the model, other conversations, calls
 * of the task's tools. It works in words; ids, masks and log-probabilities are the conversation's
 * (agents/conversation), and the same as those of a built-in agent that says the same.
 *
 * A budget that is used up is answered with `over`, and so is every later request of its kind.
 */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_AGENT_TURNS_H
#define SLUICE_WORKERS_HANDLERS_ROLES_AGENT_TURNS_H

#include "workers/agents/conversation/conversation.h"
#include "workers/agents/conversation/tool_telling.h"
#include "workers/handlers/roles/messages.h"
#include "workers/handlers/wire/peer.h"

enum over { OVER_NONE, OVER_TURNS, OVER_TOKENS, OVER_CONTEXT };

struct agent_turns {
    struct agent_run *run;
    struct conversation conversation;
    bool is_open;     /* there is a prompt */
    bool is_answered; /* the last turn is the model's: nothing was added since */
    struct toolbox box;
    bool has_box;
    struct tool_telling telling; /* its format is there once the prompt describes the tools */
    char *block;                 /* that description */
    size_t unsaid;               /* results of tools that the record has, and the conversation not yet */
    enum over over;
    char why[256]; /* OVER_CONTEXT: in words */
};

void agent_turns_close(struct agent_turns *turns);

/*
 * Serve the request in job->message and reply: 0, also where it was refused. Negative errno with a sentence ends the
 * run, as conversation_end has it.
 */
int agent_turns_sample(struct agent_turns *turns, struct handler_job *job, struct fail *fail);
int agent_turns_fork(struct agent_turns *turns, struct handler_job *job, struct fail *fail);
int agent_turns_tool(struct agent_turns *turns, struct handler_job *job, struct fail *fail);

#endif
