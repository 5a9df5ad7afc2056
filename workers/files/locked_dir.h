/*
 * locked_dir.h - directories of a cache that several processes of this node share, each made whole
 * under another name and then renamed, and used only while held.
 *
 * Holding is a shared flock on the directory itself, which the kernel lets go of however the
 * holder ends. Removing takes an exclusive one and renames before it deletes, so that nobody
 * loses a directory under their feet. Names with HELD_DIR_TMP in them are remains of the killed.
 * The time a directory was last asked for is its mtime. Blocking, but for the local disk alone.
 */
#ifndef SLUICE_WORKERS_FILES_LOCKED_DIR_H
#define SLUICE_WORKERS_FILES_LOCKED_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"

#define HELD_DIR_TMP ".tmp."
/* Of those, what was being removed: nobody will want it, so that a sweep need not wait for it to be idle. */
#define HELD_DIR_GONE HELD_DIR_TMP "gone-"

/* The lock on a finished directory, closed to release it; or -1: there is none (any more). */
int locked_dir_hold(const char *path);
/* Whether the open `dir` is what stands at `path`. */
bool locked_dir_is_at(int dir, const char *path);
/* Takes its name from it, whoever holds it, so that the next one is made anew. False:
 * it was not what `path` leads to. */
bool locked_dir_set_aside(int dir, const char *path);
/* Removes what nobody else holds, or goes on with removing it; `dir` is open and not locked by us, or alone by
 * us. False: it stays. */
bool locked_dir_remove(int dir, const char *path);
/* Makes an empty directory <parent>/<name>.tmp.XXXXXX; the caller frees the path. NULL: *fail. */
char *locked_dir_make(const char *parent, const char *name, struct fail *fail);

#endif
