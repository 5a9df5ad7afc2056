/*
 * patch.h - patches as git diff writes them: whose files they are, and a patch without those of some. Pure. A path that
 * git has put in quotes is read as what it stands for.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_PATCH_H
#define SLUICE_WORKERS_EVALUATORS_SWE_PATCH_H

#include "common/base/buffer.h"
#include "schemas/task/task.h"

/* Paths, each once, in the order in which they were added. */
struct paths {
    char **each;
    size_t count, capacity;
    bool failed; /* memory is out */
};

#define AUTO_PATHS __attribute__((cleanup(paths_finish))) struct paths
void paths_finish(struct paths *paths);
void paths_add(struct paths *paths, struct slice path);

/* Every file that a patch names: changed, made, removed, renamed from and to. */
void patch_list_files(struct slice patch, struct paths *ret);

/* What became of a patch. */
struct patch_kept {
    struct buffer patch;       /* the rest */
    struct paths files;        /* of the rest */
    struct paths made;         /* of these, those that it makes */
    struct paths tests;        /* left out, as files of the tests */
    struct paths is_protected; /* left out, as eval.swe.protected has them */
};
void patch_kept_finish(struct patch_kept *kept);

/* `tests` are files of the tests. False: memory is out, or it is no patch. */
bool patch_keep(struct slice patch, const struct task_swe *swe, const struct paths *tests, struct patch_kept *ret);

#endif
