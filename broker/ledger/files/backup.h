/*
 * backup.h - a copy of the ledger while the broker runs: <data>/backups/<name>.db, compact and
 * whole, of one moment. A thread with a connection of its own makes it as <name>.db.part, syncs
 * it and renames it; the ledger goes on meanwhile, its write-ahead log growing until the copy is
 * done. A name is used once: nothing is overwritten.
 *
 * All functions are the owner's thread's.
 */
#ifndef SLUICE_BROKER_LEDGER_FILES_BACKUP_H
#define SLUICE_BROKER_LEDGER_FILES_BACKUP_H

#include <stdint.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

struct backup;

/* Removes what copies that were cut short have left. For the start, under the ledger's lock. */
void backups_clean(const char *data_dir);

/*
 * `name` holds no '/'. `reserve_bytes` of the disk must be free beside the copy. -EEXIST: the
 * name is taken; -ENOSPC: it would not fit.
 */
int backup_start(struct backup **ret, const char *data_dir, struct slice name, uint64_t reserve_bytes,
                 struct fail *fail);
/* Readable (for poll) once it has ended. */
int backup_fd(const struct backup *backup);
/* Its end, waited for: 0 and the copy's bytes, or why there is none. */
int backup_finish(struct backup **backup, uint64_t *ret_bytes, struct fail *fail);
/* Ends it now; nothing of it stays. NULL-safe. */
void backup_cancel(struct backup **backup);

#endif
