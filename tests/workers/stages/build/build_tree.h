/* A directory to match in, leave out of and take the digest of. */
#ifndef SLUICE_TESTS_WORKERS_STAGES_BUILD_TREE_H
#define SLUICE_TESTS_WORKERS_STAGES_BUILD_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/dirtree_remove.h"

static char top[64];
static int root;
static atomic_bool stop;

static inline int set_up_tree(void **state)
{
    (void)state;
    atomic_store(&stop, false);
    strcpy(top, "/tmp/sluice-tree-XXXXXX");
    root = mkdtemp(top) ? open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return root < 0 ? -1 : 0;
}

static inline int tear_down_tree(void **state)
{
    (void)state;
    close(root);
    return dirtree_remove(top);
}

/* Runs it there. */
static inline void shell(const char *command)
{
    char whole[1024];
    snprintf(whole, sizeof(whole), "cd %s && %s", top, command);
    assert_int_equal(system(whole), 0);
}

#endif
