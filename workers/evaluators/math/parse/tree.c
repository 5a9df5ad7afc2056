#include "workers/evaluators/math/parse/tree.h"

#include <stdlib.h>

struct math_node *node_new(struct math_tree *tree, enum math_kind kind)
{
    if (tree->count == tree->room)
        return NULL;
    struct math_node *node = &tree->nodes[tree->count++];
    *node = (struct math_node){.kind = kind};
    return node;
}

void node_push(struct math_node *node, struct math_node *child)
{
    child->next = NULL;
    *(node->last ? &node->last->next : &node->first) = child;
    node->last = child;
    node->count++;
    if (child->height >= node->height)
        node->height = child->height + 1;
}

struct math_node *node_of(struct math_tree *tree, enum math_kind kind, struct math_node *child)
{
    struct math_node *node = child && child->height < MATH_HEIGHT_MAX ? node_new(tree, kind) : NULL;
    if (node)
        node_push(node, child);
    return node;
}

struct math_node *node_of_two(struct math_tree *tree, enum math_kind kind, struct math_node *a, struct math_node *b)
{
    struct math_node *node = b && b->height < MATH_HEIGHT_MAX ? node_of(tree, kind, a) : NULL;
    if (node)
        node_push(node, b);
    return node;
}

struct math_node *node_call(struct math_tree *tree, const char *name, struct math_node *a, struct math_node *b)
{
    struct math_node *node = node_of(tree, MATH_IS_CALL, a);
    if (!node)
        return NULL;
    node->text = slice_from_str(name);
    if (b)
        node_push(node, b);
    return node;
}

struct math_node *node_integer(struct math_tree *tree, unsigned value)
{
    struct math_node *node = node_new(tree, MATH_IS_NUMBER);
    if (node)
        node->number = (struct math_number){.is_exact = true,
                                            .is_whole = true,
                                            .above = value,
                                            .below = 1,
                                            .residue = value,
                                            .approximate = value,
                                            .significant = 1};
    return node;
}

bool node_is_numeric(const struct math_node *node)
{
    if (node->kind == MATH_IS_NUMBER)
        return true;
    if (node->kind > MATH_IS_SIGNED || node->kind == MATH_IS_NAME)
        return false;
    for (const struct math_node *child = node->first; child; child = child->next)
        if (!node_is_numeric(child))
            return false;
    return true;
}

void math_tree_finish(struct math_tree *tree)
{
    free(tree->tokens.at);
    free(tree->nodes);
    free(tree->units);
    *tree = (struct math_tree){0};
}
