/*
 * model.h - the model of one rollout as all its agents call it: who it began with, and may not become another; how many
 * turns and tokens were sampled, and how many a next turn may; how old its versions are; what it holds on its engine.
 *
 * Errors are those of engine.h; model_end turns one into the agent's outcome.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_MODEL_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_MODEL_H

#include "workers/agents/agent.h"
#include "workers/engines/engines.h"
#include "workers/engines/server/listener.h"
#include "workers/jobs/blame.h"

struct model {
    struct agent_run *run;
    char identity[80];       /* of the engine that it began on: who is another may not go on */
    uint64_t context_tokens; /* of the engine or the task, whichever is less */
    size_t turns;            /* sampled */
    uint64_t sampled;        /* tokens, in all turns */
    uint64_t turn_tokens;    /* the next turn samples at most so many; 0: sampling.max_tokens */
    double longest_call_s;   /* of those that were answered */
    int64_t call_start_ms;   /* 0: no call in hand */
    struct engine_stay stay; /* what it holds on its engine */
    bool trusts;             /* who answers is not asked behind each call: model_settle before the record counts */
};

/* Asks the engine what it serves; the record says so from now on. */
int model_open(struct model *model, struct agent_run *run, struct fail *fail);
void model_close(struct model *model);

/*
 * `error` is what an engine's function returned last. It stands if who answered is the one it began with, else -ESTALE:
 * ids and verdicts of another mean something else (engines/server/identity.h), and so do other log-probabilities.
 */
int model_refuse_another(const struct model *model, int error, struct fail *fail);

/*
 * Samples a turn behind the prompt within what is left. `ret` is zeroed but for its listener; generation_finish it in
 * any case.
 */
struct model_turn {
    const struct engine_listener *listener; /* hears the text as it is sampled; NULL: nobody does */
    struct generation generation;
    struct record_turn turn;         /* as the record has it; borrows from the other two */
    struct record_sampling sampling; /* as the engine was asked */
};
int model_sample(struct model *model, const struct tokens *prompt, struct model_turn *ret, struct fail *fail);

/*
 * At the end, and before another engine is gone to: -ESTALE where it is not the one that it began with that answered.
 * Nobody waits for an engine that does not answer, and a pause is not waited for.
 */
int model_settle(const struct model *model, struct fail *fail);

/* Whether all tokens of limits.sampled_tokens are sampled. */
bool model_is_spent(const struct model *model);
/* What one more trace, of so many tokens behind those of the others, would be beyond, if anything: -E2BIG. */
int model_check_room(const struct model *model, size_t traces, size_t tokens, const char *reason, struct fail *fail);
/* -E2BIG: a prompt of so many tokens leaves no room in the context. */
int model_check_fits(const struct model *model, uint64_t prompt, struct fail *fail);

/* The outcome of an error (or 0: OK), and run->detail. */
enum outcome model_end(const struct model *model, int error, const struct fail *fail);

#endif
