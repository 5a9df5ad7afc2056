/*
 * lock.h - one broker to a directory: flock on <dir>/lock, which the kernel lets go
 * of when the process ends, however it ends.
 */
#ifndef SLUICE_BROKER_LOCK_H
#define SLUICE_BROKER_LOCK_H

#include "common/fail.h"

enum { LOCK_NOTE_SIZE = 16 };

/*
 * Makes `dir` where it is not there (not its parents). The caller closes *ret_fd to
 * let go. -EBUSY: another process has it, and the sentence names its pid.
 */
int lock_take(const char *dir, int *ret_fd, struct fail *fail);

/* What was left with lock_note last, by whichever process; empty at first. */
void lock_read_note(int fd, char ret_note[LOCK_NOTE_SIZE]);
/* Leaves a word for whoever takes the lock next; on disk before this returns. */
int lock_note(int fd, const char *note, struct fail *fail);

#endif
