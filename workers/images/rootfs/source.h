/*
 * source.h - the bytes of an image, read at an offset: a file, a part of one, or memory in tests.
 * Nothing here moves a file's position.
 */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_SOURCE_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct image_source {
    /* Exactly `len` bytes, all within `size`: 0, or negative errno (-ENODATA: it ends before). */
    int (*read_at)(const struct image_source *source, uint64_t offset, void *data, size_t len);
    const void *memory; /* borrowed; NULL: of the file */
    int file;           /* borrowed */
    uint64_t start, size;
};

struct image_source image_source_of_memory(const void *data, size_t size);
/* `size` bytes of the file from `start` on. */
struct image_source image_source_of_file(int file, uint64_t start, uint64_t size);
/* -ENODATA when offset + len does not lie within. */
int image_source_read(const struct image_source *source, uint64_t offset, void *data, size_t len);

#endif
