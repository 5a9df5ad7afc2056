/*
 * images/config.h - what an image says of how its programs are to be run: environment variables, working directory,
 * user. It is read from the first that is there of
 *
 *   <image>.config.json     beside it: an OCI image config ({"config": {"Env": [...], "WorkingDir": "...",
 *                           "User": "..."}}), which is what `skopeo inspect` prints of one
 *   <key>/config.json       of a prepared OCI image: the config of its layout
 *   /.singularity.d/env     in it, as Apptainer leaves there: lines `export NAME=VALUE` whose value needs no shell
 *
 * Nothing else of it is used: no entry point, no command, no script is run.
 */
#ifndef SLUICE_WORKERS_IMAGES_CONFIG_H
#define SLUICE_WORKERS_IMAGES_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

enum { IMAGE_CONFIG_MAX = 1 << 20, IMAGE_VARIABLES_MAX = 128, IMAGE_VARIABLES_BYTES_MAX = 8192 };

#define IMAGE_CONFIG_NAME "config.json"

struct image_config {
    char *user, *workdir; /* NULL: it says nothing */
    char **variables;     /* "NAME=VALUE", each name once */
    size_t variable_count, bytes;
};

void image_config_finish(struct image_config *config);
/* False when out of memory. */
bool image_config_copy(const struct image_config *from, struct image_config *ret);
/* In place of one of that name; -E2BIG beyond the limits, -EINVAL what is no variable. */
int image_config_set(struct image_config *config, const char *name, const char *value);
/* NULL: it has none of that name. */
const char *image_config_get(const struct image_config *config, const char *name);

/* Of an OCI image config. -EINVAL with a sentence. */
int image_config_parse(struct slice text, struct image_config *ret, struct fail *fail);
/* The part of an OCI config that image_config_parse reads, as a document of its own; the caller's. */
json_t *image_config_json(const struct image_config *config);

/*
 * `name` is the image as an absolute path, `root` the directory that sandboxes stand on, `prepared` that of its key, or
 * NULL. An image that says nothing has an empty one. -EINVAL: what it says cannot be read. Blocking.
 */
int image_config_load(const char *name, const char *root, const char *prepared, struct image_config *ret,
                      struct fail *fail);

#endif
