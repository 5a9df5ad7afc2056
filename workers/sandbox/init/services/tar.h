/*
 * tar.h - writes a POSIX (pax) archive: a ustar header wherever that can hold the truth, pax
 * records for the rest (long names, nanoseconds, sizes over 8 GiB, holes as GNU.sparse 1.0).
 * Names are bytes (hdrcharset=BINARY). Owner and group are 0: whoever unpacks owns.
 * Format: POSIX.1-2017 pax; GNU tar manual, "Storing Sparse Files".
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SERVICES_TAR_H
#define SLUICE_WORKERS_SANDBOX_INIT_SERVICES_TAR_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/buffer.h"

struct tar {
    int fd;                  /* borrowed; may be a pipe, blocking or not */
    const atomic_bool *stop; /* borrowed; NULL: nobody ends it early (-ECANCELED) */
    struct buffer pending, chunk;
    uint64_t bytes; /* written so far */
    int error;      /* the first one, negative errno; later calls do nothing */
};

struct tar_entry {
    const char *path, *link; /* link: of symlinks and hard links, else NULL */
    char type;               /* '0' file, '1' hard link, '2' symlink, '5' directory */
    mode_t mode;
    struct timespec mtime;
    struct slice records; /* of tar_add_attribute */
};

/* An extended attribute, as a record (of the form of star: SCHILY.xattr). */
void tar_add_attribute(struct buffer *records, const char *name, struct slice value);

void tar_put(struct tar *tar, const struct tar_entry *entry);
/* A regular file with its data from `file`, of which `it` is the fstat. */
void tar_put_file(struct tar *tar, const struct tar_entry *entry, int file, const struct stat *it);
/* The end marker, and all that is still held back. Returns tar->error. */
int tar_end(struct tar *tar);
void tar_finish(struct tar *tar);

#endif
