/* print.h - what was found, for people and for programs. */
#ifndef SLUICE_WORKERS_VERIFY_PRINT_H
#define SLUICE_WORKERS_VERIFY_PRINT_H

#include "workers/verify/report.h"
#include "workers/verify/verify.h"

/* A line, where the trajectory has an error: its first. */
void verify_print_wrong(const char *rollout, const struct report *report, FILE *out);
void verify_print(const struct report *all, const struct verify_options *options, double seconds, FILE *out);
/* One line; `rollout` NULL: the totals. */
void verify_print_json(const char *rollout, const struct report *report, const struct verify_options *options,
                       FILE *out);

#endif
