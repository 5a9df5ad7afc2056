/*
 * secrets.h - files and directories of the host that others may not read. Root of the host owns the sandbox when it runs
 * us, so they are looked for once, before any sandbox, and covered in all (host_image.c). The worker finds them; the
 * spawner, which has no right to look everywhere, is told.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SECRETS_H
#define SLUICE_WORKERS_SANDBOX_SECRETS_H

#include <stdbool.h>

#include "common/fail.h"
#include "common/slice.h"

/* Beside what else is told in one message of wire.h. */
enum { SECRETS_LIST_MAX = 32768 };

struct secret {
    const char *path; /* without the leading slash */
    bool is_dir;
};

/* Looks for those of this host, in place of what was found before. 0 or negative errno. */
int secrets_find(struct fail *fail);
/* What was found, for secrets_take in another process. */
struct slice secrets_list(void);
/* False where it is too long. */
bool secrets_take(struct slice list);
/* One after the other, from *at = 0. False: there are no more. */
bool secrets_next(size_t *at, struct secret *ret);

#endif
