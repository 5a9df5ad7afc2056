/*
 * evaluator_files.h - files between an evaluator and its sandbox: what it is given in /run/sluice, and what was left
 * there or at another path, by anybody: plain files, never through a link at the end, never more than is asked for.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_EVALUATOR_FILES_H
#define SLUICE_WORKERS_EVALUATORS_EVALUATOR_FILES_H

#include <sys/types.h>

#include "common/base/buffer.h"
#include "common/base/fail.h"

struct sandbox;

/*
 * The file at `path`, to be read, or a negative errno: of those that blame_is_file_fault knows, what lies there is at
 * fault; -EINVAL: it is not a plain file.
 */
int evaluator_file_open(struct sandbox *sandbox, const char *path, off_t *ret_size, struct fail *fail);
/* Appends `len` bytes from there on, or fewer where it ends. 0 or negative errno, of the node. */
int evaluator_file_read(int file, off_t from, size_t len, struct buffer *ret, struct fail *fail);

#endif
