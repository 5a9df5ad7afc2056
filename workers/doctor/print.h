/* print.h - what was found, for people and for programs. */
#ifndef SLUICE_WORKERS_DOCTOR_PRINT_H
#define SLUICE_WORKERS_DOCTOR_PRINT_H

#include "workers/doctor/doctor.h"

void doctor_print(const struct doctor_report *report, FILE *out);
void doctor_print_json(const struct doctor_report *report, FILE *out);

#endif
