/* report.h - what `sluice simulate` prints: for people, and as JSON. */
#ifndef SLUICE_BROKER_SIMULATE_REPORT_REPORT_H
#define SLUICE_BROKER_SIMULATE_REPORT_REPORT_H

#include <stdio.h>

#include "broker/simulate/simulate.h"

/* Of what it is told. */
struct report {
    const struct fleet *fleet;
    const struct load *load;
    const char *tasks; /* as they were named */
    const struct figures *figures;
    double took_s; /* of real time */
};

void report_print(const struct report *report, FILE *out);
/* False when out of memory or it cannot be written. */
bool report_json(const struct report *report, FILE *out);

#endif
