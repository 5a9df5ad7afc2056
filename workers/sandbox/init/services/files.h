/*
 * files.h - what pid 1 does with files and terminals for who is outside: opens, renames, removes.
 * Paths are absolute and mean what they mean inside. `as_user` leaves pid 1 no more rights than
 * the processes of the sandbox have.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SERVICES_FILES_H
#define SLUICE_WORKERS_SANDBOX_INIT_SERVICES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"

/* Files and directories only, and none of /proc, where "self" would be us. Makes parents with
 * O_CREAT. Never blocks on a FIFO. An fd or negative errno. */
int files_open(const char *path, uint64_t flags, mode_t mode, bool as_user, struct fail *fail);
/* As the user. The last components are not followed. to NULL: removes a file. */
int files_rename(const char *from, const char *to, struct fail *fail);
/* A new terminal: its master's fd, and N of /dev/pts/N. */
int files_open_terminal(int *ret_number, struct fail *fail);
/*
 * Whether the file systems that the container is made of still answer, and what was written, open as `upper` (or -1),
 * was not removed. `number` is another each time: a name made of it is in no cache. Only what a file system says
 * that is gone or failing counts, and no errno that those inside can bring about.
 */
int files_confirm(int upper, uint64_t number, struct fail *fail);

#endif
