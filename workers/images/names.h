/*
 * images/names.h - what a Dockerfile calls an image, such as ubuntu:24.04: the path that the worker's operator gave it
 * (--image-name NAME=PATH), else a file or directory of that name in a directory of images (--images): NAME as it is,
 * or with
 * "/" and ":" as "_", with .sif behind it or not. docker.io/, library/ and :latest may be left out.
 */
#ifndef SLUICE_WORKERS_IMAGES_NAMES_H
#define SLUICE_WORKERS_IMAGES_NAMES_H

#include "workers/images/list.h"

enum { IMAGE_NAMES_MAX = 1024 };

/* Zero it first; it owns the texts. */
struct image_names {
    char **each; /* "NAME=PATH", the names without what may be left out */
    size_t count;
    const struct image_list *list; /* borrowed */
};

/* "NAME=PATH". -EINVAL. */
int image_names_add(struct image_names *names, const char *text, struct fail *fail);
void image_names_finish(struct image_names *names);
/* The path, the caller's; -EINVAL with the option that names it. `names` may be NULL. Blocking: for offload.h. */
int image_names_find(const struct image_names *names, const char *name, char **ret, struct fail *fail);

#endif
