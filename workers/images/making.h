/*
 * images/making.h - one run of `sluice-image prepare`: a process of its own, so that a damaged
 * image or a file system that hangs is no crash and no stop of the worker. It is killed with the
 * worker, and after IMAGE_MAKING_MAX_S. On the loop; nothing here blocks.
 */
#ifndef SLUICE_WORKERS_IMAGES_MAKING_H
#define SLUICE_WORKERS_IMAGES_MAKING_H

#include "common/base/fail.h"
#include "common/loop/loop.h"

enum { IMAGE_MAKING_MAX_S = 3600 };

struct image_made {
    int code; /* 0; -EINVAL: the image is at fault, -ENOMEDIUM: it cannot be read; else the node */
    struct fail fail;
    char *path;  /* of the directory */
    char *watch; /* whose change means another image; NULL: `path` is the image itself */
};
void image_made_finish(struct image_made *made);

struct image_order_words {
    const char *program, *cache, *image;
    uint64_t max_bytes; /* of the cache; 0: what the disk holds */
};

struct image_making;

/* `ended` is called once, on the loop, when it is over. NULL: *fail. */
struct image_making *image_making_start(struct loop *loop, const struct image_order_words *order,
                                        void (*ended)(void *arg), void *arg, struct fail *fail);
/* NULL while it runs. */
const struct image_made *image_making_result(const struct image_making *making);
/* Kills it if it runs; NULL-safe. */
void image_making_destroy(struct image_making **making);

#endif
