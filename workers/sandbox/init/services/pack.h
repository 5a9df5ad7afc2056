/*
 * pack.h - the upper directory of an overlay as a tar with OCI whiteouts (markers.h), in an order
 * that depends on names only. Attributes of files and directories that begin with "user." are kept
 * (PACK_ATTRIBUTES_MAX bytes of a file's; what does not fit, and names with a '=', is left out),
 * others are not, nor are those of the overlay itself. Sockets and FIFOs are left out too; what
 * they stand in front of stays hidden. Source of the form: OCI image specification, "Image Layer
 * Filesystem Changeset"; kernel, Documentation/filesystems/overlayfs.rst (userxattr).
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SERVICES_PACK_H
#define SLUICE_WORKERS_SANDBOX_INIT_SERVICES_PACK_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "workers/sandbox/init/services/touched.h"

enum { PACK_PATH_MAX = 4096, PACK_DEPTH_MAX = 256, PACK_ATTRIBUTES_MAX = 2048 };
#define PACK_FILE_MAX (UINT64_C(1) << 40)  /* of one file, holes included */
#define PACK_BYTES_MAX (UINT64_C(8) << 30) /* of the tar */

/* How what is gone is noted. */
enum pack_form {
    PACK_KERNEL, /* as the kernel's overlay does */
    PACK_FUSE,   /* by names as in markers.h, which fuse-overlayfs hides from those inside */
    PACK_WHOLE,  /* not at all: each directory at the top is all there is of it */
    PACK_FIRST,  /* not at all: nothing lies below. An empty directory at the top is not worth a word. */
    PACK_TREE    /* as in an unpacked layer (dirtree.h) */
};

/*
 * 0 bytes when nothing was written. What it comes by is noted in *touched. Beyond the limits above: -ENAMETOOLONG for
 * paths and depth, -EFBIG for sizes. Blocking; where `stop` is not NULL it ends soon after that is set, with
 * -ECANCELED.
 */
int pack_upper(int upper, int fd, enum pack_form form, const atomic_bool *stop, uint64_t *bytes,
               struct touched *touched, struct fail *fail);

#endif
