#include "workers/agents/proxy/tree_shown.h"

static size_t count(const void *arg) { return ((const struct tree *)arg)->count; }

/* How many roots are before that of the node. */
static size_t trace_of(const struct tree *tree, size_t at)
{
    size_t traces = 0;
    while (tree->nodes[at].parent != TREE_NONE)
        at = tree->nodes[at].parent;
    for (size_t i = 0; i < at; i++)
        traces += tree->nodes[i].parent == TREE_NONE;
    return traces;
}

static const char *role_of(const struct tree_node *node)
{
    if (node->is_sampled)
        return "assistant";
    return node->parent == TREE_NONE ? "prompt" : tell_role_word(node->role);
}

static void get(const void *arg, size_t at, struct live_turn *ret)
{
    const struct tree *tree = arg;
    const struct tree_node *node = &tree->nodes[at];
    *ret = (struct live_turn){.turn = node->is_sampled ? &node->turn : NULL,
                              .role = role_of(node),
                              .ids = node->ids.ids,
                              .logprobs = node->is_sampled ? node->logprobs : NULL,
                              .count = node->ids.count,
                              .after = node->parent == TREE_NONE ? LIVE_NO_TURN : node->parent,
                              .reason = node->reason,
                              .trace = trace_of(tree, at)};
}

struct live_turns tree_shown(const struct tree *tree)
{
    return (struct live_turns){.count = count, .get = get, .arg = tree};
}
