/*
 * traces.h - the tree of turns as traces of the record: each path from a root to where nothing was sampled behind it.
 * Those of one root stand together, the one that was gone on with last before those that branch off. A turn is the
 * first one's that holds it, with mask 1 where its labels train, and prompt in others. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_TRACES_TRACES_H
#define SLUICE_WORKERS_AGENTS_PROXY_TRACES_TRACES_H

#include "workers/agents/proxy/tree.h"

/* How many traces the record would have now. */
size_t traces_count(const struct tree *tree);
/* Tokens of all traces as the record would have them now. */
size_t traces_tokens(const struct tree *tree);
/* Writes all traces; `trained` are the labels that train. False: out of memory, or beyond what a record holds. */
bool traces_write(const struct tree *tree, uint32_t trained, struct record *record);

#endif
