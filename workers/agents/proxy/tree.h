/*
 * tree.h - all that the model of one rollout was shown and said, as a tree of turns. A *shown* node has messages of the
 * harness and the ids that they became; a *sampled* one has a turn of the model. They take turns down each path, whose
 * ids in a row are the prompt of whatever is sampled at its end. A path that could not be extended id for id has a
 * root of its own, which shows the whole conversation anew. What becomes of it in the record: traces/traces.h. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_TREE_H
#define SLUICE_WORKERS_AGENTS_PROXY_TREE_H

#include "schemas/trajectory/trajectory.h"
#include "workers/engines/server/turn.h"
#include "workers/agents/proxy/said.h"

#define TREE_NONE SIZE_MAX

struct tree_node {
    size_t parent; /* TREE_NONE: a root */
    bool is_sampled;
    struct said *messages; /* owned; shown: at least one; sampled: the one that the harness was told */
    size_t count;
    struct record_stretches said; /* the record's messages that say so, as the model was told and said it; owned */
    struct tokens ids;
    enum tell_role role;     /* shown, but at a root: whose turn the model was told it in */
    char *text;              /* sampled: all that it said, thinking and calls as it wrote them; owned */
    float *logprobs;         /* sampled: ids.count */
    struct record_turn turn; /* sampled: as the record has it, but for offset and length */
    bool is_delivered;       /* sampled: somebody has read it */
    bool is_retold;          /* sampled: a hook told the harness something else */
    char *reason;            /* of a root: why its trace starts; "" for the first. Owned */
    struct said_tool *tools; /* of a root: what its prompt describes. Owned */
    size_t tool_count;
};

struct tree {
    struct tree_node *nodes; /* a parent before its children */
    size_t count, capacity;
};

/* Where a request goes on. */
struct tree_match {
    size_t node;      /* the deepest whose path the request's history begins with; TREE_NONE: there is none */
    size_t taken;     /* messages of the request that the path has */
    bool is_rewrite;  /* the history has a reply, known by its handle, in other words */
    bool has_history; /* it holds a message of the assistant's */
};

/*
 * The deepest node from which the request's next turn can be sampled: one that shows all that it says, or the sampled
 * one behind which the rest of it is to be shown.
 */
void tree_match(const struct tree *tree, const struct said_request *request, struct tree_match *ret);

/* Appends an empty node; NULL: out of memory. Nodes that were had before move. */
struct tree_node *tree_add(struct tree *tree, size_t parent);
/* Moves messages [from, count) of the request into the node, and to a root its tools. False: out of memory. */
bool tree_take_messages(struct tree_node *node, struct said_request *request, size_t from);
/* Takes the last node off again. */
void tree_drop_last(struct tree *tree);
/* The path's nodes from its root on, into room for all of the tree's; how many. */
size_t tree_list_path(const struct tree *tree, size_t node, size_t *ret);
/* The ids of the path to the node, itself included, appended. False: out of memory. */
bool tree_path(const struct tree *tree, size_t node, struct tokens *ret);
void tree_finish(struct tree *tree);

#endif
