/*
 * layers/unpack/tar.h - a layer's tar becomes a directory that overlayfs takes as a lower one. Blocking;
 * for offload.h. Nothing is trusted: no path leads out of the directory, no symlink is followed,
 * devices are refused, set-user-ID bits are dropped, entries and bytes are bounded.
 *
 * Owner: this process's user. Modes of files and directories are the archive's, directories
 * without rights for us included (overlayfs reads them with the rights of who mounted it).
 * OCI whiteouts (".wh.NAME", ".wh..wh..opq") become what dirtree.h says.
 */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_TAR_H
#define SLUICE_WORKERS_LAYERS_UNPACK_TAR_H

#include <stdatomic.h>

#include "common/base/fail.h"
#include "workers/layers/unpack/lz4_stream.h"

#define LAYER_BYTES_MAX (UINT64_C(8) << 30)
enum { LAYER_ENTRIES_MAX = 4 << 20 };

/*
 * Fills the empty directory `root`. -EBADMSG: not an archive that a sandbox packs; -EFBIG: beyond
 * the bounds. What is there after a failure is the caller's to remove. *ret_bytes is about what it
 * takes on a disk.
 */
int layer_tar_unpack(int root, struct lz4_reader *tar, const atomic_bool *stop, uint64_t *ret_bytes, struct fail *fail);

#endif
