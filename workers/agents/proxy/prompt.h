/*
 * prompt.h - the node of the tree that a request's next turn follows: found, or added with the ids of what is new,
 * behind what was sampled or, where that cannot be extended, as a root that shows the whole conversation. Awaits.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_PROMPT_H
#define SLUICE_WORKERS_AGENTS_PROXY_PROMPT_H

#include "workers/agents/proxy/offered.h"
#include "workers/agents/proxy/proxy.h"

/* Takes the messages that are new out of the request. 0 with the index of the node; or as engine.h. */
int prompt_find(struct proxy *proxy, struct said_request *request, const struct toolbox *box, size_t *ret,
                struct fail *fail);
/* The ids of the whole conversation as the template has it. */
int prompt_render(struct proxy *proxy, const struct said_request *request, const struct toolbox *box,
                  struct tokens *ret, struct fail *fail);

#endif
