/*
 * own_file.h - files that their owner alone may read (0600), whatever the umask and whatever
 * the directory lets others do, and that have no other name. SQLite gives a -wal, a -shm and a journal the mode of
 * their file.
 */
#ifndef SLUICE_BROKER_LEDGER_FILES_OWN_FILE_H
#define SLUICE_BROKER_LEDGER_FILES_OWN_FILE_H

#include "common/base/fail.h"

/* Makes an empty file. -EEXIST: one is there, and stays as it is. */
int own_file_make(const char *path, struct fail *fail);
/*
 * Refuses a symbolic link (-ELOOP) and a file that has another name (-EMLINK). Who came by that
 * name would lock another directory and read another -wal, and write over what this one wrote.
 */
int own_file_check_name(const char *path, struct fail *fail);
/* Takes from others what they may do with the file, if it is there. */
int own_file_close(const char *path, struct fail *fail);

#endif
