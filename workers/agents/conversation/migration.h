/* migration.h - a rollout goes on on another engine, between two turns. */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_MIGRATION_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_MIGRATION_H

#include "workers/agents/conversation/model.h"

/*
 * If the broker wants it elsewhere, and there the same is served: it is on another engine from now on, with a context
 * of so many tokens.
 */
void model_migrate(struct model *model, uint64_t tokens);

#endif
