#include "workers/agents/proxy/traces/labels.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/meaning.h"

/* All that stands under one system prompt. */
struct conversation {
    size_t asked; /* how often; 0: there is no conversation */
    bool goes_on; /* something was asked behind a reply */
    bool has_tools;
};

/* ---- which roots are of one conversation ------------------------------------------------------------- */

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

/* The first root under the root's system prompt. */
static size_t find_first(const struct tree *tree, const size_t *firsts, size_t root)
{
    for (size_t i = 0; i < root; i++)
        if (firsts[i] == i && has_system_of(&tree->nodes[i], &tree->nodes[root]))
            return i;
    return root;
}

/* Of each node the first root of its conversation. */
static size_t *find_firsts(const struct tree *tree)
{
    size_t *firsts = calloc(tree->count + 1, sizeof(*firsts));
    for (size_t i = 0; firsts && i < tree->count; i++) {
        const size_t parent = tree->nodes[i].parent;
        firsts[i] = parent == TREE_NONE ? find_first(tree, firsts, i) : firsts[parent];
    }
    return firsts;
}

/* ---- what a conversation is like ----------------------------------------------------------------------- */

/* Whether it says all that the earlier one says, and a reply to that, be it in other words than were sampled. */
static bool is_behind(const struct tree_node *root, const struct tree_node *earlier)
{
    if (root->count <= earlier->count || root->messages[earlier->count].role != SAID_ASSISTANT)
        return false;
    for (size_t i = 0; i < earlier->count; i++)
        if (!meaning_equals(&earlier->messages[i], &root->messages[i], root->tools, root->tool_count))
            return false;
    return true;
}

static bool is_behind_any(const struct tree *tree, const size_t *firsts, size_t root)
{
    for (size_t i = firsts[root]; i < root; i++)
        if (tree->nodes[i].parent == TREE_NONE && firsts[i] == firsts[root] &&
            is_behind(&tree->nodes[root], &tree->nodes[i]))
            return true;
    return false;
}

static struct conversation *list_conversations(const struct tree *tree, const size_t *firsts, bool is_growing)
{
    struct conversation *all = calloc(tree->count + 1, sizeof(*all));
    for (size_t i = 0; all && i < tree->count; i++) {
        const struct tree_node *node = &tree->nodes[i];
        struct conversation *its = &all[firsts[i]];
        if (node->is_sampled)
            continue;
        its->asked++;
        its->has_tools = its->has_tools || node->tool_count > 0;
        its->goes_on = its->goes_on || (is_growing && its->has_tools) || node->parent != TREE_NONE ||
                       is_behind_any(tree, firsts, i);
    }
    return all;
}

/* ---- labels ---------------------------------------------------------------------------------------------- */

/* Rather the main one than an earlier one. */
static bool is_rather(const struct conversation *one, const struct conversation *earlier)
{
    if (one->goes_on || earlier->goes_on)
        return !earlier->goes_on;
    return one->asked != earlier->asked ? one->asked > earlier->asked : one->has_tools && !earlier->has_tools;
}

static const struct conversation *find_main(const struct conversation *all, size_t count)
{
    const struct conversation *found = all;
    for (size_t i = 0; i < count; i++)
        if (all[i].asked > 0 && is_rather(&all[i], found))
            found = &all[i];
    return found;
}

static enum label label_of(const struct conversation *it, const struct conversation *main)
{
    if (it == main)
        return LABEL_MAIN;
    return main->has_tools && !it->has_tools && !it->goes_on ? LABEL_AUXILIARY : LABEL_SUB_AGENT;
}

enum label *labels_of_roots(const struct tree *tree, bool is_growing)
{
    AUTO_FREE size_t *firsts = find_firsts(tree);
    AUTO_FREE struct conversation *all = firsts ? list_conversations(tree, firsts, is_growing) : NULL;
    enum label *labels = all ? calloc(tree->count + 1, sizeof(*labels)) : NULL;
    const struct conversation *main = labels ? find_main(all, tree->count) : NULL;
    for (size_t i = 0; labels && i < tree->count; i++)
        labels[i] = label_of(&all[firsts[i]], main);
    return labels;
}
