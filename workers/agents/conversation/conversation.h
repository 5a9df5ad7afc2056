/*
 * conversation.h - what all agents that talk to an engine do: one growing array of ids that is at
 * once the record's last trace and the next turn's prompt. Nothing is ever taken from it, so a
 * turn's prompt extends the turn before by construction. Where the engine's template would not
 * extend it, a new trace starts: the whole conversation, rendered anew, and the reason.
 *
 * Errors are those of engine.h; conversation_end turns one into the agent's outcome.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_CONVERSATION_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_CONVERSATION_H

#include "workers/agents/agent.h"
#include "workers/agents/conversation/history.h"
#include "workers/agents/conversation/model.h"

struct conversation {
    struct model model;
    struct tokens ids;      /* the last trace, and the next prompt */
    struct history history; /* the same in words */
    bool is_cut;            /* the last turn ended by length */
};

/* Renders the messages; a system message `system` goes in front if they have none (NULL: none). */
int conversation_open(struct conversation *conversation, struct agent_run *run, const char *system, struct fail *fail);
/*
 * As conversation_open with `system`, for agents whose tools must be in the prompt: `block` becomes the
 * end of the system message, whoever wrote that.
 */
int conversation_open_with(struct conversation *conversation, struct agent_run *run, const char *system,
                           const char *block, struct fail *fail);
/* As conversation_open, of these messages; those from `text_from` on are text whatever they say (engine_render). */
int conversation_open_messages(struct conversation *conversation, struct agent_run *run,
                               const struct task_message *messages, size_t count, size_t text_from, struct fail *fail);
/* Goes on with these messages, all of them text, in place of what was said so far: a new trace, for that reason. */
int conversation_fork(struct conversation *conversation, const struct task_message *messages, size_t count,
                      const char *reason, struct fail *fail);
void conversation_close(struct conversation *conversation);

/* Samples a turn and records it. The text (borrowed) is run->answer, good until the next turn. */
int conversation_sample(struct conversation *conversation, struct fail *fail);

/*
 * What the model sees next, as the user's turn. `tool` names the tool call it answers, as in
 * record_say; NULL when it is the agent itself that speaks.
 */
int conversation_tell(struct conversation *conversation, struct slice content, const char *tool, int exit_status,
                      double seconds, struct fail *fail);

/*
 * As one turn in that role or several in a row, and without a message in the record, which has it
 * already in other words.
 */
int conversation_bridge(struct conversation *conversation, enum tell_role role, const struct slice *contents,
                        size_t count, double seconds, struct fail *fail);
/* The outcome of an error (or 0: OK), and run->detail. */
enum outcome conversation_end(const struct conversation *conversation, int error, const struct fail *fail);

#endif
