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

/* The path's nodes from its root on, into `ret`; how many. */
static size_t list_path(const struct tree *tree, size_t node, size_t *ret)
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
    const size_t count = path ? list_path(tree, node, path) : 0;
    bool done = path != NULL;
    for (size_t i = 0; i < count && done; i++)
        done = tokens_append(ret, tree->nodes[path[i]].ids.ids, tree->nodes[path[i]].ids.count);
    return done;
}

/* ---- the record ----------------------------------------------------------------------------------- */

/*
 * Where paths end: at turns that nothing sampled follows. What was shown and never answered has nothing to learn from,
 * but where there is nothing else.
 */
static bool *find_leaves(const struct tree *tree)
{
    bool *leaves = calloc(tree->count + 1, sizeof(*leaves));
    bool is_any = false;
    for (size_t i = 0; leaves && i < tree->count; i++) {
        const size_t shown = tree->nodes[i].parent;
        leaves[i] = tree->nodes[i].is_sampled;
        is_any = is_any || leaves[i];
        if (leaves[i] && tree->nodes[shown].parent != TREE_NONE)
            leaves[tree->nodes[shown].parent] = false;
    }
    if (leaves && tree->count > 0 && !is_any)
        leaves[0] = true;
    return leaves;
}

size_t tree_record_tokens(const struct tree *tree)
{
    AUTO_FREE bool *leaves = find_leaves(tree);
    size_t tokens = 0;
    for (size_t i = 0; leaves && i < tree->count; i++)
        for (size_t at = leaves[i] ? i : TREE_NONE; at != TREE_NONE; at = tree->nodes[at].parent)
            tokens += tree->nodes[at].ids.count;
    return tokens;
}

static const char *shown_role(const struct tree_node *node)
{
    return node->parent == TREE_NONE ? "prompt" : node->messages[0].role == SAID_TOOL ? "tool" : "user";
}

/* What the harness never read, or read in a hook's words, led to nothing that is rewarded: `is_learnt` is false, and
 * the mask 0. */
static bool write_node(const struct tree_node *node, bool is_learnt, struct record *record)
{
    struct record_turn turn = node->turn;
    if (!node->is_sampled)
        strcpy(turn.role, shown_role(node));
    return record_append(record, &turn, node->ids.ids, is_learnt ? node->logprobs : NULL, node->ids.count, is_learnt);
}

/* What other traces have is this one's prompt. */
static bool write_known(const struct tree *tree, const size_t *path, size_t count, struct record *record)
{
    struct tokens ids = {0};
    struct record_turn turn = {.role = "prompt"};
    bool done = tree_path(tree, path[count - 1], &ids) && record_append(record, &turn, ids.ids, NULL, ids.count, false);
    tokens_finish(&ids);
    return done;
}

static const char *trace_reason(const struct tree *tree, const size_t *path, size_t known)
{
    return known > 0 ? "branch: another turn follows what was sampled" : tree->nodes[path[0]].reason;
}

static bool write_trace(const struct tree *tree, size_t leaf, bool *written, struct record *record)
{
    AUTO_FREE size_t *path = calloc(tree->count, sizeof(*path));
    const size_t count = path ? list_path(tree, leaf, path) : 0;
    size_t known = 0;
    while (known < count && written[path[known]])
        known++;
    bool done = path && record_start_trace(record, trace_reason(tree, path, known));
    if (done && known > 0)
        done = write_known(tree, path, known, record);
    for (size_t i = known; i < count && done; i++) {
        const struct tree_node *node = &tree->nodes[path[i]];
        done = write_node(node, node->is_sampled && !node->is_retold && (node->is_delivered || i + 1 < count), record);
        written[path[i]] = true;
    }
    return done;
}

bool tree_write(const struct tree *tree, struct record *record)
{
    AUTO_FREE bool *leaves = find_leaves(tree);
    AUTO_FREE bool *written = calloc(tree->count + 1, sizeof(*written));
    bool done = leaves && written;
    for (size_t i = 0; i < tree->count && done; i++)
        if (leaves[i])
            done = write_trace(tree, i, written, record);
    return done;
}

static void node_finish(struct tree_node *node)
{
    struct said_request owner = {
        .messages = node->messages, .count = node->count, .tools = node->tools, .tool_count = node->tool_count};
    said_request_finish(&owner);
    tokens_finish(&node->ids);
    free(node->logprobs);
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
