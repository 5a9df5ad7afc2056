/*
 * masked_paths.h - files and directories of the host that those inside may not read, covered in all sandboxes
 * (container.c, host_image.c): what the worker was told of its own (keys, ledger, store, cache), whoever runs it, since
 * who is inside is the same user; and where root does, what only root may read. They are looked for once, before any
 * sandbox. The worker finds them; the spawner, which has no right to look everywhere, is told.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_MASKED_PATHS_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_MASKED_PATHS_H

#include <stdbool.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

/* Beside what else is told in one message of wire.h. */
enum { SECRETS_LIST_MAX = 32768, SECRETS_KEPT_MAX = 16 };

struct secret {
    const char *path; /* without the leading slash */
    bool is_dir;
};

/* One of the worker's own, as long as this process lives; what is not there is passed over. */
int masked_paths_keep(const char *path, struct fail *fail);
/* Lists those, and where is_root what only root may read of this host, in place of what was listed before. 0 or
 * negative errno. */
int masked_paths_find(bool is_root, struct fail *fail);
/* What was found, for masked_paths_take in another process. */
struct slice masked_paths_list(void);
/* False where it is too long. */
bool masked_paths_take(struct slice list);
/* One after the other, from *at = 0. False: there are no more. */
bool masked_paths_next(size_t *at, struct secret *ret);

#endif
