/*
 * lock.h - one broker to a directory: flock on the directory itself, which has no name in it
 * that could be removed, and on <dir>/lock, which says who and how. And one to a file in it that
 * could be come to by another way: moved, or mounted elsewhere. The kernel lets go of all
 * when the process ends, however it ends.
 *
 * A file system that cannot lock directories (NFS) leaves the file alone to do it. The file is
 * also what brokers of earlier versions look at.
 */
#ifndef SLUICE_BROKER_LEDGER_FILES_LOCK_H
#define SLUICE_BROKER_LEDGER_FILES_LOCK_H

#include "common/base/fail.h"

enum { LOCK_NOTE_SIZE = 16, LOCK_MARK_SIZE = 32 };

struct lock {
    int dir_fd, file_fd, held_fd; /* -1: not held */
    char note[LOCK_NOTE_SIZE], mark[LOCK_MARK_SIZE];
};

static inline struct lock lock_none(void) { return (struct lock){.dir_fd = -1, .file_fd = -1, .held_fd = -1}; }

/*
 * Makes `dir` where it is not there (not its parents). ret->note and ret->mark are what was left with lock_note and
 * lock_mark last, by whichever process; empty at first. -EBUSY: another process has it, and the sentence
 * names its pid.
 */
int lock_take(const char *dir, struct lock *ret, struct fail *fail);
/*
 * Locks one file, itself, until lock_let_go. To be called before SQLite opens that file, and let
 * go of after SQLite has closed it: a process that closes any descriptor of a file loses all its
 * POSIX locks on it, which are what SQLite's are. -EBUSY: another process holds it, by whatever
 * name. A file that may not be written is not held; that is said by whoever opens it.
 */
int lock_hold(struct lock *lock, const char *path, struct fail *fail);
void lock_let_go(struct lock *lock);

/* Leaves a word for whoever takes the lock next; on disk before this returns. */
int lock_note(struct lock *lock, const char *note, struct fail *fail);
/* Leaves another; it outlives the process at once, and a power cut may bring back an earlier one. */
void lock_mark(struct lock *lock, const char *mark);

/* Makes the file anew, as it was, where somebody removed it. */
void lock_look(struct lock *lock);

#endif
