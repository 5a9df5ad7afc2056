/* remove_tree.h - a directory with all in it, whatever the modes of its directories are; links are not followed. */
#ifndef SLUICE_CLIENT_CLI_GRADE_REMOVE_TREE_H
#define SLUICE_CLIENT_CLI_GRADE_REMOVE_TREE_H

/* What cannot be removed stays. */
void remove_tree(const char *path);

#endif
