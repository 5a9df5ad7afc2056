/*
 * images/list.h - which images tasks may name: "host", what is or lies in what the worker's operator listed (--images),
 * and what is prepared in the cache already. Never, whatever is listed, the host's root, its /etc and what the kernel
 * shows, nor what is the worker's own; nor what lies in one of those, nor a directory that holds one.
 *
 * Names are resolved before they are looked at, and what a sandbox stands on is what was looked at.
 */
#ifndef SLUICE_WORKERS_IMAGES_LIST_H
#define SLUICE_WORKERS_IMAGES_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/fail.h"

enum { IMAGE_LIST_MAX = 64 };

/* Real paths, which it owns. Zero it first. */
struct image_list {
    char *listed[IMAGE_LIST_MAX], *own[IMAGE_LIST_MAX];
    size_t listed_count, own_count;
    char *cache; /* whose prepared images may be named; or NULL */
};

/* -EINVAL: it is not there, or is nothing that may be listed. */
int image_list_add(struct image_list *list, const char *path, struct fail *fail);
/* The worker's own, a file or a directory; what is not there is passed over. */
int image_list_keep(struct image_list *list, const char *path, struct fail *fail);
int image_list_use_cache(struct image_list *list, const char *cache, struct fail *fail);
/* Whether the worker's operator may list `real`, a real path, for tasks; `option` and `path` are what was given.
 * -EINVAL. */
int image_list_check(const struct image_list *list, const char *option, const char *path, const char *real,
                     struct fail *fail);
/* Whether `real` is, holds or lies in what is the host's or the worker's own. */
bool image_list_is_own(const struct image_list *list, const char *real);
void image_list_finish(struct image_list *list);

/*
 * What a task's image leads to, the caller's to free; whether it is there and is an image, it does not say. -EINVAL: it
 * may not be named; -ENOMEDIUM: it may, perhaps, and cannot be read. Blocking: for offload.h.
 */
int image_list_find(const struct image_list *list, const char *name, char **ret, struct fail *fail);

#endif
