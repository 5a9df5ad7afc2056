/*
 * scratch.h - a worker's private directory under $TMPDIR (or /tmp), removed at its end. A locked
 * file inside says that its worker lives; what dead workers of this user left behind is swept
 * when another starts.
 */
#ifndef SLUICE_WORKERS_SCRATCH_H
#define SLUICE_WORKERS_SCRATCH_H

#include "common/fail.h"

struct scratch {
    char path[256];
    int lock;
};

int scratch_create(struct scratch *ret, struct fail *fail);
void scratch_remove(struct scratch *scratch);

#endif
