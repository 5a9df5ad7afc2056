/* tree_shown.h - the tree's nodes as turns that are shown to who watches (live/turns.h); a trace is a root's. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_TREE_SHOWN_H
#define SLUICE_WORKERS_AGENTS_PROXY_TREE_SHOWN_H

#include "workers/agents/proxy/tree.h"
#include "workers/live/turns.h"

/* Of a tree that stays where it is. */
struct live_turns tree_shown(const struct tree *tree);

#endif
