/*
 * sources/source.h - a task's files that lie on the workers' file system: a file, or a directory or tar, whose content
 * goes into a directory; copied as it is, or not at all.
 *
 * Kept are names, contents, permission bits, times and symbolic links, which are never followed and may point
 * anywhere: they mean what they mean inside. Owners are not kept, set-user-ID and set-group-ID bits are dropped.
 * Refused are devices, FIFOs and sockets; of a tar, absolute names, names with "..", and hard links to what is not in
 * it; more than SOURCE_ENTRIES_MAX entries, SOURCE_DEPTH_MAX levels or the limit's bytes; and what changes while it is
 * read. Blocking: for offload.h.
 */
#ifndef SLUICE_WORKERS_SOURCES_SOURCE_H
#define SLUICE_WORKERS_SOURCES_SOURCE_H

#include <stdatomic.h>
#include <stdint.h>

#include "workers/sources/task_dirs.h"

enum { SOURCE_ENTRIES_MAX = 65536, SOURCE_DEPTH_MAX = 128 };

struct source_order {
    const struct task_dirs *dirs;
    const char *source; /* an absolute path of this node */
    uint64_t disk_mib;  /* of the task's limits */
    const atomic_bool *stop;
};

/*
 * Fills `place`, a clean path below the open directory `root` ("" for itself), made where it is missing: it becomes the
 * file, or the directory that the content goes into. -EINVAL: the source is at fault, or not to be had; else the node
 * could not (-ENOSPC, -ENOMEM, -ECANCELED, -EIO). What is there after a failure is the caller's to remove.
 */
int source_copy(const struct source_order *order, int root, const char *place, bool *ret_is_file, struct fail *fail);

/* Whether a file is a tar, packed or not, by what is in it. Moves its position. */
bool source_is_tar(int from);
/* Unpacks one into the directory `root`, by the same rules. */
int source_unpack(int from, int root, uint64_t disk_mib, const atomic_bool *stop, struct fail *fail);

#endif
