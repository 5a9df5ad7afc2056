/*
 * turns.h - what the agents that take turns share: the model speaks, the agent acts on it, until one
 * of them ends it or a limit does: turns, tokens, replies in a row that cannot be acted on, circles.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_TURNS_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_TURNS_H

#include "workers/agents/conversation/conversation.h"
#include "workers/agents/conversation/loop_detector.h"
#include "workers/tools/tool.h"

enum step {
    STEP_MORE,
    STEP_DONE,   /* the model has ended it */
    STEP_FORMAT, /* too many replies in a row that cannot be acted on */
    STEP_LOOP    /* too many calls in a row that gave the same */
};

struct turns {
    struct agent_run *run;
    struct conversation conversation;
    bool is_last;         /* no turn follows this one, so that nobody hears what is told */
    size_t format_errors; /* in a row */
    size_t round;         /* calls of the round that is repeated; 0: none */
    struct loop_detector repeats;
};

/* Samples a turn and calls `step`, again and again; how it ended. conversation is open. */
enum outcome turns_run(struct turns *turns, int (*step)(void *agent, enum step *ret, struct fail *fail), void *agent);

/* Whether the last reply is acted on: STEP_FORMAT when it was one too many that is `wrong`. */
enum step turns_judge(struct turns *turns, bool is_wrong);
/*
 * A call that was made. Where calls go in circles: STEP_LOOP, or, if the task says so, words for the
 * model in *ret_warning (else NULL).
 */
enum step turns_notice(struct turns *turns, const char *name, struct slice call, const struct tool_result *result,
                       const char **ret_warning);

#endif
