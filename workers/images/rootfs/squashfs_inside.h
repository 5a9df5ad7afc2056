/* squashfs_inside.h - what opening a SquashFS and walking it share. */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_SQUASHFS_INSIDE_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_SQUASHFS_INSIDE_H

#include <sqfs/compressor.h>
#include <sqfs/data_reader.h>
#include <sqfs/dir_reader.h>
#include <sqfs/io.h>
#include <sqfs/super.h>
#include <sqfs/xattr_reader.h>

#include "workers/images/rootfs/squashfs.h"

struct squashfs_file {
    sqfs_file_t base;
    struct image_source source;
    int error; /* the first that was no end of the file */
};

struct squashfs {
    struct squashfs_file file;
    sqfs_super_t super;
    sqfs_compressor_t *compressor;
    sqfs_dir_reader_t *dirs;
    sqfs_data_reader_t *data;
    sqfs_xattr_reader_t *attributes; /* NULL: it has none */
};

/* What the library's error means; `what` is what it was about. Returns the trouble's code. */
int squashfs_refuse(const struct squashfs *squashfs, struct image_trouble *trouble, int error, const char *what);

#endif
