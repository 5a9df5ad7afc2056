/* apptainer_ask.h - what the installed program prints, within a time. */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_ASK_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_ASK_H

#include <stddef.h>

#include "common/base/fail.h"

/* The first line of what `arguments` (NULL-ended) print; within 5 s. */
int apptainer_ask(const char *const *arguments, char *ret, size_t size, struct fail *fail);
/* All that can be read before the other end is closed, or the same time has passed. */
void apptainer_read_said(int from, char *ret, size_t size);

#endif
