/*
 * lock.h - one broker to a directory: flock on <dir>/lock, which the kernel lets go
 * of when the process ends, however it ends.
 */
#ifndef SLUICE_BROKER_LOCK_H
#define SLUICE_BROKER_LOCK_H

#include "common/fail.h"

/*
 * Makes `dir` where it is not there (not its parents). The caller closes *ret_fd to
 * let go. -EBUSY: another process has it, and the sentence names its pid.
 */
int lock_take(const char *dir, int *ret_fd, struct fail *fail);

#endif
