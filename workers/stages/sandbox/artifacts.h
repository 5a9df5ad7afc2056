/* artifacts.h - eval.artifacts as places of the layer that the agent left: by their real paths, as image and init have
 * them. */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_ARTIFACTS_H
#define SLUICE_WORKERS_STAGES_SANDBOX_ARTIFACTS_H

#include "schemas/task/task.h"
#include "workers/files/dirtree_take.h"

struct artifacts {
    struct dirtree_place *places; /* which borrow from the task */
    size_t count;                 /* those that lead somewhere */
};

/* `roots`: directories that lie below the agent's files, the uppermost first. artifacts_finish *ret in any case. In a
 * fiber. */
int artifacts_find(const struct task *task, const char *const *roots, size_t root_count, const char *workdir,
                   struct artifacts *ret, struct fail *fail);
void artifacts_finish(struct artifacts *artifacts);

#endif
