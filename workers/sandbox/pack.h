/*
 * pack.h - the upper directory of an overlay as a tar with OCI whiteouts, in an order that
 * depends on names only. Left out: sockets, FIFOs, and names that begin with ".wh.", which such
 * a tar cannot hold. Source of the form: OCI image specification, "Image Layer Filesystem
 * Changeset"; kernel, Documentation/filesystems/overlayfs.rst (userxattr).
 */
#ifndef SLUICE_WORKERS_SANDBOX_PACK_H
#define SLUICE_WORKERS_SANDBOX_PACK_H

#include <stdint.h>

#include "common/fail.h"

enum { PACK_PATH_MAX = 4096, PACK_DEPTH_MAX = 256 };

/* 0 bytes when the directory is empty. -ENAMETOOLONG for a tree beyond the limits above. */
int pack_upper(int upper, int fd, uint64_t *bytes, struct fail *fail);

#endif
