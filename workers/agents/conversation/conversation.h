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
#include "workers/jobs/blame.h"
#include "workers/engines/engines.h"

struct conversation {
    struct agent_run *run;
    struct tokens ids;       /* the last trace, and the next prompt */
    struct history history;  /* the same in words */
    char identity[80];       /* of the engine that it began on: who is another may not go on */
    uint64_t context_tokens; /* of the engine or the task, whichever is less */
    size_t turns;            /* sampled */
    uint64_t sampled;        /* tokens, in all turns */
    uint64_t turn_tokens;    /* the next turn samples at most so many; 0: sampling.max_tokens */
    double longest_call_s;   /* of those that were answered */
    int64_t call_start_ms;   /* 0: no call in hand */
    uint64_t asked_tokens;   /* at most so many, in the last turn */
    bool is_cut;             /* the last turn ended by length */
    struct engine_stay stay; /* what it holds on its engine */
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
/* Whether the template writes `mark` around a turn of the role tool, and such turns have bridges. */
int conversation_marks_tools(struct conversation *conversation, const char *mark, bool *ret, struct fail *fail);

/* The outcome of an error (or 0: OK), and run->detail. */
enum outcome conversation_end(const struct conversation *conversation, int error, const struct fail *fail);

/* What an error means in a run: as blame_what, but out of time only when the run is. */
enum blame_what agent_what(const struct agent_run *run, int error);
/* The outcome that blame.h gives it; run->detail and run->fault. */
enum outcome agent_failed(struct agent_run *run, enum blame_who who, enum blame_what what, const struct fail *fail);
/* The same where its sandbox could not be opened, which is nobody's doing inside, and whose fault that was. */
enum outcome agent_open_failed(struct agent_run *run, int error, const struct fail *fail);

/* run->detail; returns the outcome. */
enum outcome agent_end(struct agent_run *run, enum outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
