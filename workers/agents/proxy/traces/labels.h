/* labels.h - what each conversation of a tree is, by what its roots show (schemas/labels.def). Pure. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_TRACES_LABELS_H
#define SLUICE_WORKERS_AGENTS_PROXY_TRACES_LABELS_H

#include "schemas/labels.h"
#include "workers/agents/proxy/tree.h"

/*
 * Of each root, by its node: main, sub-agent or auxiliary. While the tree still grows, what has tools is taken to go
 * on. NULL: out of memory. The caller frees it.
 */
enum label *labels_of_roots(const struct tree *tree, bool is_growing);

#endif
