/*
 * own_directory.h - the directory of a service of a command's own (own_service.h): its maker and the keeper hold its
 * lock. One whose lock nobody holds, because both were killed, is swept by the next.
 */
#ifndef SLUICE_CLIENT_CLI_GRADE_OWN_DIRECTORY_H
#define SLUICE_CLIENT_CLI_GRADE_OWN_DIRECTORY_H

#include <stddef.h>

#include "common/base/fail.h"

enum { OWN_DIRECTORY_MAX = 62 /* bytes: with its "/s" what `sluice up --ipc` takes */ };

/* The directory in which it is made: $TMPDIR, or /tmp where that is too long. */
const char *own_directory_place(void);
/* Makes it there. *ret_lock: a descriptor, closed by exec; it is free when all who have
 * it are gone. What others have left there goes first. On failure `ret` is "". */
int own_directory_make(char *ret, size_t size, int *ret_lock, struct fail *fail);

#endif
