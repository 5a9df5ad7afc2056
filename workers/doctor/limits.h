/* limits.h - the limits of this machine that matter to a worker. */
#ifndef SLUICE_WORKERS_DOCTOR_LIMITS_H
#define SLUICE_WORKERS_DOCTOR_LIMITS_H

#include "workers/doctor/doctor.h"

void doctor_read_limits(struct doctor_report *report);

#endif
