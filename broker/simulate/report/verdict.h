/* verdict.h - what the figures say: which part is short, what to add, and which would be short then. */
#ifndef SLUICE_BROKER_SIMULATE_REPORT_VERDICT_H
#define SLUICE_BROKER_SIMULATE_REPORT_VERDICT_H

#include "broker/simulate/simulate.h"

struct verdict {
    bool keeps_up;         /* what is submitted is less than what any part can do */
    enum part first, next; /* the bottleneck, and what would be it with more of the first */
    bool has_next;
    uint64_t wanted; /* of the first, from which on the next one is it */
    char text[512];  /* sentences */
};
struct verdict figures_judge(const struct figures *figures, const struct load *load);
const char *part_key(enum part part);
const char *part_words(enum part part);

#endif
