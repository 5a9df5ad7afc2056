/*
 * saying.h - the record's messages, and which of them each node of the tree says: what the model was told, as its
 * template took it, and what it said, in the order in which it came to be. So each trace's prompt can be made again of
 * the record (sluice verify). All return false when out of memory, or when the record is full.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_TRACES_SAYING_H
#define SLUICE_WORKERS_AGENTS_PROXY_TRACES_SAYING_H

#include "workers/agents/proxy/tree.h"
#include "workers/agents/proxy/words.h"

/* Of a root all of its conversation; what an earlier root begins with, too, is not said again. */
bool saying_add_words(struct tree *tree, size_t root, const struct words *words, struct record *record);
/* Of another node that shows: its messages. */
bool saying_add_messages(struct tree_node *node, struct record *record);
/* Of one that was sampled: its text. */
bool saying_add_reply(struct tree_node *node, struct record *record);

#endif
