/* images/about.h - about.json of a prepared image: what it was made of, and how large it is. */
#ifndef SLUICE_WORKERS_IMAGES_ABOUT_H
#define SLUICE_WORKERS_IMAGES_ABOUT_H

#include <jansson.h>

#include "workers/images/image.h"

/* What about.json says. */
struct image_about {
    char key[IMAGE_KEY_SIZE];
    char *name; /* the real path, with ":tag" */
    char kind[16];
    uint64_t bytes, entries;
    uint64_t devices, sockets, attributes, unreadable; /* left out */
    int64_t prepared_s, used_s;                        /* wall clock */
    bool is_held;                                      /* only image_cache_list looks */
};
void image_about_finish(struct image_about *about);

int image_about_write(const char *directory, const struct image *image, const struct rootfs_counts *counts,
                      struct image_trouble *trouble);
/* False when there is none that can be read. Also finds out when it was used. */
bool image_about_read(const char *directory, struct image_about *ret);
/* For --json; NULL: out of memory. */
json_t *image_about_json(const struct image_about *about);

#endif
