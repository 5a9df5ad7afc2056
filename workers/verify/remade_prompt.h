/* remade_prompt.h - prompts, made again: as the engine's template renders the messages. Awaits. */
#ifndef SLUICE_WORKERS_VERIFY_REMADE_PROMPT_H
#define SLUICE_WORKERS_VERIFY_REMADE_PROMPT_H

#include "workers/verify/remade_turn.h"

/* *ret, false before: whether the turn is the prompt of what was said up to it. */
int remade_prompt_check(struct remade_turn *turn, bool *ret, struct fail *fail);

#endif
