/* apptainer_show.h - what of an image, or of the host, is mounted in a container by apptainer. */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_SHOW_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_SHOW_H

#include "workers/sandbox/backends/apptainer/apptainer_site.h"

/* -EINVAL for an image that is not there, -ENOMEDIUM for one that cannot be shown: both are its own fault. */
int site_show_image(struct site *site, struct fail *fail);
int site_show_host(struct site *site, struct fail *fail);

#endif
