/*
 * real_path.h - where a path of a sandbox really lies, as the layers and the image beneath it have links on the way.
 * Blocking.
 *
 * Whiteouts and opaque directories hide what lies below; beyond a name that is not there the rest is taken as it is. Of
 * the image "host" only the names are there that its sandboxes show (system_names.def).
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_REAL_PATH_H
#define SLUICE_WORKERS_STAGES_SANDBOX_REAL_PATH_H

#include <limits.h>
#include <stddef.h>

/*
 * `path` is absolute. *ret is clean (dirtree.h): relative to the root. 0; -ELOOP: links without end; -ENAMETOOLONG;
 * -EINVAL: it is the root itself, or too deep. `roots`: the uppermost first.
 */
int real_path_find(const char *const *roots, size_t count, const char *path, char ret[static PATH_MAX]);

#endif
