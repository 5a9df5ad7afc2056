/* images/exports.h - variables from a shell file, of those lines that take no shell to understand. */
#ifndef SLUICE_WORKERS_IMAGES_EXPORTS_H
#define SLUICE_WORKERS_IMAGES_EXPORTS_H

#include "workers/images/config.h"

/* The lines `export NAME=VALUE` of one of Apptainer's files, over what is there. -E2BIG, -ENOMEM. */
int image_config_read_exports(struct slice text, struct image_config *config);

#endif
