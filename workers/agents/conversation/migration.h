/* migration.h - a conversation goes on on another engine, between two turns. */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_MIGRATION_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_MIGRATION_H

#include "workers/agents/conversation/conversation.h"

/* If the broker wants it elsewhere, and there the same is served: it is on another engine from now on. */
void conversation_migrate(struct conversation *conversation);

#endif
