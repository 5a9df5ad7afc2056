/* plot.h - how large the differences are, as an SVG picture. */
#ifndef SLUICE_WORKERS_VERIFY_PLOT_H
#define SLUICE_WORKERS_VERIFY_PLOT_H

#include "workers/verify/report.h"

void verify_plot(const struct report *all, FILE *out);

#endif
