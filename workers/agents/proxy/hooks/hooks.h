/*
 * hooks.h - an operator's hooks (agents/hook.h) on their way between a harness and its model. Each is asked of every
 * request before its prompt is made, and of every turn before it is told. What a hook makes of a conversation stands
 * from then on: the harness, which does not know of it, gives back its own words, and these become the hook's again
 * before anything is compared (hook_edits.h). What it makes of a turn is what the harness is told; the ids stay those
 * that were sampled. The record says who changed or refused what, in notes.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HOOKS_HOOKS_H
#define SLUICE_WORKERS_AGENTS_PROXY_HOOKS_HOOKS_H

#include "workers/agents/agent.h"
#include "workers/agents/hook.h"
#include "workers/agents/proxy/dialects/dialect.h"
#include "workers/agents/proxy/hooks/hook_edits.h"
#include "workers/agents/proxy/said.h"

/* Whether there are any: then nothing of a turn is told before it has passed them. */
static inline bool hooks_are_there(const struct agent_run *run) { return run->hooks && run->hooks->count > 0; }
/*
 * Awaits. 0: the request is what the model is to be shown. -EPERM: "refused by hook NAME: ...". -EOWNERDEAD: a hook is
 * not there, or does not answer as it must. -E2BIG: too large to ask, or too much is changed; others as of waiting.
 */
int hooks_ask_request(struct hook_edits *edits, struct agent_run *run, uint64_t turn, struct said_request *request,
                      struct fail *fail);
/* The same of a turn: where it is changed, `told` has what the harness is told, without ids; else nothing. */
int hooks_ask_reply(struct agent_run *run, uint64_t turn, const struct reply *reply, struct said_request *told,
                    struct fail *fail);

#endif
