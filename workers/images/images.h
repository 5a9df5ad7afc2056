/*
 * images.h - the images of a worker's tasks: a name becomes a directory that a sandbox can stand
 * on, held while it does. What must be unpacked is, once a node (images/image_cache.h), by a
 * process of its own (images/making.h) that all jobs who want it wait for. A job whose time is up
 * leaves it running, for its next attempt; once all who waited were cancelled it is killed.
 *
 * What a name stood for is remembered, and looked at again when it was IMAGES_FRESH_MS ago: a warm
 * image costs a flock. On the loop's thread.
 */
#ifndef SLUICE_WORKERS_IMAGES_IMAGES_H
#define SLUICE_WORKERS_IMAGES_IMAGES_H

#include <sys/types.h>

#include "common/base/fail.h"
#include "workers/images/config.h"
#include "workers/images/list.h"
#include "common/loop/loop.h"

enum { IMAGES_FRESH_MS = 1000, IMAGES_REMEMBERED = 256 };

struct images;

/* `cache` and `list` are borrowed. NULL: out of memory. `max_bytes` 0: what the disk holds. */
struct images *images_create(struct loop *loop, const char *cache, uint64_t max_bytes, const struct image_list *list);
/* Kills what still prepares; nobody may hold or wait any more. NULL-safe. */
void images_destroy(struct images **images);

struct image_hold {
    char *path; /* "host", or a directory */
    int lock;   /* -1: nothing of ours */
    dev_t dev;  /* without a lock, but of "host": which directory it is */
    ino_t ino;
    struct image_config config; /* how what is in it is to be run */
};

/*
 * In a fiber. -EINVAL: the image is at fault (missing, damaged, refused, none that tasks may name), -ENOMEDIUM: it is
 * there and cannot be read; -ETIMEDOUT and -ECANCELED as awaits; else the node could not.
 */
int images_hold(struct images *images, const char *name, struct image_hold *ret, struct fail *fail);
/*
 * 0 when it is what was held, in the place where it was, and, if it was prepared, as it was then. Else -ENOMEDIUM, the
 * image is not there; or -ESTALE: nobody will stand on that copy again. Blocking; from any thread.
 */
int image_hold_look(const struct image_hold *hold, struct fail *fail);
/* NULL-safe inside: also for a zeroed one. */
void image_hold_release(struct image_hold *hold);

#endif
