#include "workers/agents/proxy/tree.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/meaning.h"

/* ---- where a request goes on ------------------------------------------------------------------ */

/* How many of the request's messages from `at` on the node says: all of its own, or none. */
static size_t node_takes(const struct tree_node *node, const struct said_request *request, size_t at)
{
    if (node->count > request->count - at)
        return 0;
    for (size_t i = 0; i < node->count; i++)
        if (!meaning_equals(&node->messages[i], &request->messages[at + i], request->tools, request->tool_count))
            return 0;
    return node->count;
}

static bool has_tools_of(const struct tree_node *root, const struct said_request *request)
{
    return meaning_tools_equal(root->tools, root->tool_count, request->tools, request->tool_count);
}

/* Where its last message of the assistant's ends. */
static size_t end_of_history(const struct said_request *request)
{
    size_t end = request->count;
    while (end > 0 && request->messages[end - 1].role != SAID_ASSISTANT)
        end--;
    return end;
}

/*
 * A place to go on from is behind what was sampled, or where nothing is left to be shown. Words that the assistant is
 * said to have spoken since are nobody's to be told behind it.
 */
static bool is_place(const struct tree_node *node, const struct said_request *request, size_t taken)
{
    return node->is_sampled ? taken < request->count && taken >= end_of_history(request) : taken == request->count;
}

/* Whether the message is a turn of the model's in other words than it was told. */
static bool is_rewrite(const struct tree *tree, const struct said_request *request, const struct said *message)
{
    bool is_known = false;
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_node *node = &tree->nodes[i];
        if (!node->is_sampled || !meaning_knows(&node->messages[0], message))
            continue;
        if (meaning_equals(&node->messages[0], message, request->tools, request->tool_count))
            return false;
        is_known = true;
    }
    return is_known;
}

void tree_match(const struct tree *tree, const struct said_request *request, struct tree_match *ret)
{
    *ret = (struct tree_match){.node = TREE_NONE};
    AUTO_FREE size_t *taken = calloc(tree->count + 1, sizeof(*taken)); /* by the path to each node; 0: another path */
    for (size_t i = 0; taken && i < tree->count; i++) {
        const struct tree_node *node = &tree->nodes[i];
        const bool is_root = node->parent == TREE_NONE;
        if (is_root ? !has_tools_of(node, request) : taken[node->parent] == 0)
            continue;
        const size_t before = is_root ? 0 : taken[node->parent], more = node_takes(node, request, before);
        taken[i] = more > 0 ? before + more : 0;
        if (more > 0 && is_place(node, request, taken[i]) && taken[i] >= ret->taken) {
            ret->node = i;
            ret->taken = taken[i];
        }
    }
    ret->has_history = end_of_history(request) > 0;
    for (size_t i = ret->taken; i < request->count && !ret->is_rewrite; i++)
        ret->is_rewrite = is_rewrite(tree, request, &request->messages[i]);
}

/* ---- growing ------------------------------------------------------------------------------------ */

struct tree_node *tree_add(struct tree *tree, size_t parent)
{
    if (tree->count == tree->capacity) {
        const size_t capacity = tree->capacity > 0 ? 2 * tree->capacity : 16;
        struct tree_node *nodes = reallocarray(tree->nodes, capacity, sizeof(*nodes));
        if (!nodes)
            return NULL;
        tree->nodes = nodes;
        tree->capacity = capacity;
    }
    struct tree_node *node = &tree->nodes[tree->count++];
    *node = (struct tree_node){.parent = parent};
    return node;
}

bool tree_take_messages(struct tree_node *node, struct said_request *request, size_t from)
{
    node->messages = calloc(request->count - from, sizeof(*node->messages));
    if (!node->messages)
        return false;
    node->count = request->count - from;
    memcpy(node->messages, request->messages + from, node->count * sizeof(*node->messages));
    request->count = from;
    if (node->parent == TREE_NONE) {
        node->tools = take_ptr(&request->tools);
        node->tool_count = request->tool_count;
        request->tool_count = request->tool_capacity = 0;
    }
    return true;
}

/* ---- paths -------------------------------------------------------------------------------------- */

size_t tree_list_path(const struct tree *tree, size_t node, size_t *ret)
{
    size_t count = 0;
    for (size_t at = node; at != TREE_NONE; at = tree->nodes[at].parent)
        ret[count++] = at;
    for (size_t i = 0; i < count / 2; i++) {
        const size_t other = ret[i];
        ret[i] = ret[count - 1 - i];
        ret[count - 1 - i] = other;
    }
    return count;
}

bool tree_path(const struct tree *tree, size_t node, struct tokens *ret)
{
    AUTO_FREE size_t *path = calloc(tree->count, sizeof(*path));
    const size_t count = path ? tree_list_path(tree, node, path) : 0;
    bool done = path != NULL;
    for (size_t i = 0; i < count && done; i++)
        done = tokens_append(ret, tree->nodes[path[i]].ids.ids, tree->nodes[path[i]].ids.count);
    return done;
}

/* ---- its end -------------------------------------------------------------------------------------- */

static void node_finish(struct tree_node *node)
{
    struct said_request owner = {
        .messages = node->messages, .count = node->count, .tools = node->tools, .tool_count = node->tool_count};
    said_request_finish(&owner);
    tokens_finish(&node->ids);
    free(node->logprobs);
    free(node->said.runs);
    record_turn_finish(&node->turn);
    free(node->reason);
    free(node->text);
}

void tree_drop_last(struct tree *tree) { node_finish(&tree->nodes[--tree->count]); }

void tree_finish(struct tree *tree)
{
    while (tree->count > 0)
        tree_drop_last(tree);
    free(tree->nodes);
    *tree = (struct tree){0};
}
