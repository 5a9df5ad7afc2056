/*
 * ear.h - the model's next turn, heard while it is sampled (hearing.h) where somebody listens. Whether its prompt began
 * its thinking is asked of the engine, which says what the ids at the end of a prompt are. Awaits.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_EAR_H
#define SLUICE_WORKERS_AGENTS_PROXY_EAR_H

#include "workers/agents/proxy/proxy.h"

/* Whether the prompt ends with the beginning of a thought. */
int ear_look_at_prompt(struct proxy *proxy, const struct tokens *prompt, bool *ret_opened, struct fail *fail);

/* Samples behind it; `reply` is what is known of the turn already, `listener` NULL for nobody. */
struct ear_turn {
    const struct tokens *prompt;
    bool is_opened;
    const struct toolbox *box;
    const struct reply *reply;
    const struct proxy_listener *listener;
};
int ear_sample(struct proxy *proxy, const struct ear_turn *turn, struct model_turn *ret, struct fail *fail);

#endif
