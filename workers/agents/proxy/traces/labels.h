/* labels.h - what each conversation of a tree is, by what its root shows (schemas/labels.def). Pure. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_TRACES_LABELS_H
#define SLUICE_WORKERS_AGENTS_PROXY_TRACES_LABELS_H

#include "schemas/labels.h"
#include "workers/agents/proxy/tree.h"

/* The root that shows the main conversation first: the first with tools, or the first of all; TREE_NONE: no root. */
size_t labels_find_main(const struct tree *tree);
/* Main, sub-agent or auxiliary. */
enum label labels_of_root(const struct tree *tree, size_t root, size_t main_root);

#endif
