/* report.h - what `sluice simulate` prints: for people, and as JSON. */
#ifndef SLUICE_BROKER_SIMULATE_REPORT_H
#define SLUICE_BROKER_SIMULATE_REPORT_H

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

/* 1234567.8 as "1,234,568"; what is below 100 with three digits. */
void print_count(double count, char ret[32]);
/* "0.25s", "12s", "4m05s", "3h20m" */
void print_seconds(double seconds, char ret[32]);

#endif
