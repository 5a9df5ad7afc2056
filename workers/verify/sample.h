/* sample.h - trajectories, read from the lines of a file. */
#ifndef SLUICE_WORKERS_VERIFY_SAMPLE_H
#define SLUICE_WORKERS_VERIFY_SAMPLE_H

#include <stdio.h>

#include "common/base/fail.h"
#include "schemas/trajectory/trajectory.h"

/* A line of `sluice watch --json` or `sluice submit --out`. Lengths agree; nothing else is sure. */
struct sample {
    char rollout[300];
    struct record record;
};
/* 1 with a trajectory, 0 at the end, -EINVAL for a line that is none (sample_finish after each). */
int sample_next(FILE *file, uint64_t *line, struct sample *ret, struct fail *fail);
void sample_finish(struct sample *given);

#endif
