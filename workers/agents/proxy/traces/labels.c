#include "workers/agents/proxy/traces/labels.h"

#include <string.h>

size_t labels_find_main(const struct tree *tree)
{
    size_t first = TREE_NONE;
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].parent != TREE_NONE)
            continue;
        if (tree->nodes[i].tool_count > 0)
            return i;
        first = first == TREE_NONE ? i : first;
    }
    return first;
}

/* The `i`-th message of its system prompt, which stands before all others; NULL: there is none. */
static const char *system_at(const struct tree_node *root, size_t i)
{
    return i < root->count && root->messages[i].role == SAID_SYSTEM ? root->messages[i].text : NULL;
}

static bool has_system_of(const struct tree_node *one, const struct tree_node *other)
{
    for (size_t i = 0;; i++) {
        const char *text = system_at(one, i), *same = system_at(other, i);
        if (!text || !same)
            return text == same;
        if (strcmp(text, same) != 0)
            return false;
    }
}

enum label labels_of_root(const struct tree *tree, size_t root, size_t main_root)
{
    const struct tree_node *node = &tree->nodes[root], *mains = &tree->nodes[main_root];
    if (node->tool_count == 0 && mains->tool_count > 0)
        return LABEL_AUXILIARY;
    return has_system_of(node, mains) ? LABEL_MAIN : LABEL_SUB_AGENT;
}
