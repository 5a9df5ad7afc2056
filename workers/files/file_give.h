/* file_give.h - a small file for those inside a sandbox, in a directory that they cannot write to. */
#ifndef SLUICE_WORKERS_FILES_FILE_GIVE_H
#define SLUICE_WORKERS_FILES_FILE_GIVE_H

#include <sys/types.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

/*
 * Into one of the directories of /run/sluice (sandbox_commands_dir, sandbox_outputs_dir), where nothing of that name
 * is. 0 or negative errno.
 */
int file_give(int dir, const char *name, mode_t mode, struct slice content, struct fail *fail);

#endif
