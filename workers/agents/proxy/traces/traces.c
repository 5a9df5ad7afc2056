#include "workers/agents/proxy/traces/traces.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/traces/labels.h"

/* ---- where paths end ------------------------------------------------------------------------------- */

/*
 * At turns that nothing sampled follows. What was shown and never answered has nothing to learn from, but where there
 * is nothing else.
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

size_t traces_count(const struct tree *tree)
{
    AUTO_FREE bool *leaves = find_leaves(tree);
    size_t count = 0;
    for (size_t i = 0; leaves && i < tree->count; i++)
        count += leaves[i];
    return count;
}

size_t traces_tokens(const struct tree *tree)
{
    AUTO_FREE bool *leaves = find_leaves(tree);
    size_t tokens = 0;
    for (size_t i = 0; leaves && i < tree->count; i++)
        for (size_t at = leaves[i] ? i : TREE_NONE; at != TREE_NONE; at = tree->nodes[at].parent)
            tokens += tree->nodes[at].ids.count;
    return tokens;
}

/* Of each node its root. */
static size_t *find_roots(const struct tree *tree)
{
    size_t *roots = calloc(tree->count + 1, sizeof(*roots));
    for (size_t i = 0; roots && i < tree->count; i++)
        roots[i] = tree->nodes[i].parent == TREE_NONE ? i : roots[tree->nodes[i].parent];
    return roots;
}

/* How late the path's last turn is that somebody has read; 0: none has. */
static size_t last_read(const struct tree *tree, size_t leaf)
{
    const struct tree_node *node = &tree->nodes[leaf];
    if (!node->is_sampled || node->is_delivered)
        return leaf + 1;
    const size_t before = tree->nodes[node->parent].parent;
    return before == TREE_NONE ? 0 : before + 1;
}

/* ---- one trace ------------------------------------------------------------------------------------- */

struct writing {
    const struct tree *tree;
    uint32_t trained;
    struct record *record;
    bool *leaves, *written;
    size_t *roots;
    enum label *labels;
};

/* The nodes from a root to a leaf; the first `known` are other traces' already. */
struct path {
    size_t *nodes, count, known;
};

static const struct tree_node *node_at(const struct writing *writing, const struct path *path, size_t i)
{
    return &writing->tree->nodes[path->nodes[i]];
}

/* What another turn follows was read as well. */
static bool is_read(const struct writing *writing, const struct path *path, size_t i)
{
    return i + 1 < path->count || node_at(writing, path, i)->is_delivered;
}

static enum label label_of(const struct writing *writing, const struct path *path)
{
    const enum label whole = writing->labels[path->nodes[0]];
    size_t sampled = 0, read = 0;
    for (size_t i = path->known; i < path->count; i++) {
        sampled += node_at(writing, path, i)->is_sampled;
        read += node_at(writing, path, i)->is_sampled && is_read(writing, path, i);
    }
    if (whole == LABEL_AUXILIARY)
        return whole;
    if (sampled > 0 && read == 0)
        return LABEL_UNDELIVERED;
    return path->known > 0 && whole == LABEL_MAIN ? LABEL_BRANCH : whole;
}

static const char *shown_role(const struct tree_node *node)
{
    return node->parent == TREE_NONE ? "prompt" : node->messages[0].role == SAID_TOOL ? "tool" : "user";
}

/* Why it is not learned from; LABEL_COUNT: it is. */
static enum label mask_of(const struct writing *writing, enum label trace, const struct tree_node *node, bool is_read)
{
    if (!labels_have(writing->trained, trace))
        return trace;
    if (node->is_retold && !labels_have(writing->trained, LABEL_RETOLD))
        return LABEL_RETOLD;
    return is_read || labels_have(writing->trained, LABEL_UNDELIVERED) ? LABEL_COUNT : LABEL_UNDELIVERED;
}

static bool write_shown(const struct tree_node *node, struct record *record)
{
    struct record_turn turn = node->turn;
    strcpy(turn.role, shown_role(node));
    return record_append(record, &turn, node->ids.ids, NULL, node->ids.count, false);
}

static bool write_sampled(const struct tree_node *node, enum label mask, struct record *record)
{
    struct record_turn turn = node->turn;
    const bool is_learnt = mask == LABEL_COUNT;
    strcpy(turn.masked, is_learnt ? "" : label_word(mask));
    return record_append(record, &turn, node->ids.ids, is_learnt ? node->logprobs : NULL, node->ids.count, is_learnt);
}

/* What other traces have is this one's prompt. */
static bool write_known(const struct writing *writing, const struct path *path)
{
    struct tokens ids = {0};
    const struct record_turn turn = {.role = "prompt"};
    bool done = tree_path(writing->tree, path->nodes[path->known - 1], &ids) &&
                record_append(writing->record, &turn, ids.ids, NULL, ids.count, false);
    tokens_finish(&ids);
    return done;
}

static bool write_turns(struct writing *writing, const struct path *path, enum label label)
{
    bool done = path->known == 0 || write_known(writing, path);
    for (size_t i = path->known; i < path->count && done; i++) {
        const struct tree_node *node = node_at(writing, path, i);
        done = node->is_sampled
                   ? write_sampled(node, mask_of(writing, label, node, is_read(writing, path, i)), writing->record)
                   : write_shown(node, writing->record);
        writing->written[path->nodes[i]] = true;
    }
    return done;
}

static bool write_said(const struct writing *writing, const struct path *path, struct record_stretches *ret)
{
    bool done = true;
    for (size_t i = 0; i < path->count; i++) {
        const struct record_stretches *said = &node_at(writing, path, i)->said;
        for (size_t k = 0; k < said->count && done; k++)
            done = record_stretches_add(ret, said->runs[k].offset, said->runs[k].length);
    }
    return done;
}

static bool write_trace(struct writing *writing, size_t leaf)
{
    const struct tree *tree = writing->tree;
    AUTO_FREE size_t *nodes = calloc(tree->count, sizeof(*nodes));
    struct path path = {.nodes = nodes, .count = nodes ? tree_list_path(tree, leaf, nodes) : 0};
    while (path.known < path.count && writing->written[nodes[path.known]])
        path.known++;
    if (path.count == 0 ||
        !record_start_trace(writing->record, path.known > 0 ? "branch: another turn follows what was sampled"
                                                            : tree->nodes[nodes[0]].reason))
        return false;
    struct record_trace *trace = &writing->record->traces[writing->record->trace_count - 1];
    const enum label label = label_of(writing, &path);
    strcpy(trace->label, label_word(label));
    return write_said(writing, &path, &trace->messages) && write_turns(writing, &path, label);
}

/* ---- all of them ------------------------------------------------------------------------------------- */

/* Of the root's paths the one that was gone on with last. */
static size_t find_last(const struct writing *writing, size_t root)
{
    size_t found = TREE_NONE;
    for (size_t i = root; i < writing->tree->count; i++)
        if (writing->leaves[i] && writing->roots[i] == root &&
            (found == TREE_NONE || last_read(writing->tree, i) > last_read(writing->tree, found)))
            found = i;
    return found;
}

static bool write_root(struct writing *writing, size_t root)
{
    const size_t last = find_last(writing, root);
    bool done = last == TREE_NONE || write_trace(writing, last);
    for (size_t i = root; i < writing->tree->count && done; i++)
        if (writing->leaves[i] && writing->roots[i] == root && i != last)
            done = write_trace(writing, i);
    return done;
}

bool traces_write(const struct tree *tree, uint32_t trained, struct record *record)
{
    AUTO_FREE bool *leaves = find_leaves(tree);
    AUTO_FREE bool *written = calloc(tree->count + 1, sizeof(*written));
    AUTO_FREE size_t *roots = find_roots(tree);
    AUTO_FREE enum label *labels = labels_of_roots(tree, false);
    struct writing writing = {.tree = tree,
                              .trained = trained,
                              .record = record,
                              .leaves = leaves,
                              .written = written,
                              .roots = roots,
                              .labels = labels};
    bool done = leaves && written && roots && labels;
    for (size_t i = 0; i < tree->count && done; i++)
        if (tree->nodes[i].parent == TREE_NONE)
            done = write_root(&writing, i);
    return done;
}
