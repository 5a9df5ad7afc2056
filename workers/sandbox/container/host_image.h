/*
 * host_image.h - the image "host", which is the host's own system directories, read-only; and what of any image is
 * covered or kept in its place.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_HOST_IMAGE_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_HOST_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/fail.h"

bool host_image_is(const char *image);
/* "usr" ... of those that this host may have; NULL beyond the last. */
const char *host_image_name(size_t i);
/* Whether a path, without the leading slash, is at one of them or in it. */
bool host_image_shows(const char *path);
/* Their names as the host has them, or has them not, in what is to lie above all layers; mount points and links. */
int host_image_prepare(int top, int skeleton, struct fail *fail);
/* Mounted below tree/ of the base mounts, secrets (masked_paths.h) covered, and from there in a container,
 * links too. */
int host_image_mount(int base, struct fail *fail);
int host_image_attach(int base, int root, struct fail *fail);
/* Of an image of the task's own, by its real path: secrets that lie in it are covered. */
int image_mask_paths(const char *image, int base, int root, struct fail *fail);
/* Of any image: what `root` has of those names, read-only, and a mount on each, which keeps it there. */
int system_names_seal(int root, struct fail *fail);
/* Without mounts: allows them to be read under `rules` (landlock.h), without secrets. */
int host_image_allow(int rules, struct fail *fail);

#endif
