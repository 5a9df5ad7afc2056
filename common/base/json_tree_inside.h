/* json_tree_inside.h - what the files of json_tree.h share. */
#ifndef SLUICE_COMMON_BASE_JSON_TREE_INSIDE_H
#define SLUICE_COMMON_BASE_JSON_TREE_INSIDE_H

#include "common/base/json_tree.h"

/*
 * Whether all members of an object have names of their own, escapes read: in time proportional to
 * the object's text, whoever wrote it. 1, 0 or -ENOMEM.
 */
int tree_names_are_unique(const struct tree *tree, const struct tree_node *object);

#endif
