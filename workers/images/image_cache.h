/*
 * image_cache.h - prepared images of this node: <cache>/images/<key>/ with about.json, root/, the
 * directory that sandboxes stand on, and an index of it (tree_index.h). Made once, whoever asks: under <key>.lock,
 * beside, and renamed when whole, so that one that was killed leaves nothing that counts. Held, removed and dated as
 * locked_dir.h says. The least recently used that nobody holds go first, when the cache is over its size or the disk
 * too full for the next. Blocking; for a program of its own.
 */
#ifndef SLUICE_WORKERS_IMAGES_IMAGE_CACHE_H
#define SLUICE_WORKERS_IMAGES_IMAGE_CACHE_H

#include "workers/images/about.h"
#include "workers/images/image.h"

enum { IMAGE_REMAINS_S = 60 }; /* what was begun and not ended so long ago may be swept */

struct image_cache {
    char *directory;    /* <cache>/images */
    uint64_t bytes_max; /* of all prepared ones; 0: what the disk holds */
};
int image_cache_open(const char *cache, uint64_t bytes_max, struct image_cache *ret, struct image_trouble *trouble);
void image_cache_close(struct image_cache *cache);

struct image_order {
    struct rootfs_limits limits;
    const atomic_bool *stop;
    /* May be NULL. `total` is what image_count found, all 0 before that. */
    void (*progress)(void *arg, const struct rootfs_counts *done, const struct rootfs_counts *total);
    void *progress_arg;
};

struct image_prepared {
    char *path; /* of root/ */
    int lock;   /* close it to let go */
    bool is_new;
    struct image_about about;
};
void image_prepared_finish(struct image_prepared *prepared);

/* Held on success. *ret is written only then. */
int image_cache_prepare(const struct image_cache *cache, struct image *image, const struct image_order *order,
                        struct image_prepared *ret, struct image_trouble *trouble);
/* Unpacks any image but the host's into `path`, which must not exist. */
int image_unpack_to(struct image *image, const char *path, const struct image_order *order, struct rootfs_counts *ret,
                    struct image_trouble *trouble);

/* All prepared ones, the most recently used first; image_about_finish each, then free. */
int image_cache_list(const struct image_cache *cache, struct image_about **ret, size_t *ret_count,
                     struct image_trouble *trouble);
/* Whether one of that name (image_about's) is prepared below `cache`. */
bool image_cache_has(const char *cache, const char *name);
/* Removes remains, then the unheld unused since `idle_s`, then the least recently used until at
 * most bytes_max are left. Returns how many images went; *ret_bytes what they took. */
size_t image_cache_prune(const struct image_cache *cache, int64_t idle_s, uint64_t bytes_max, uint64_t *ret_bytes);

#endif
