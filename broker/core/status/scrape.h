/*
 * core/status/scrape.h - what the writers of metrics share: the text being written, the workers as one pass has counted
 * them, and samples with one label or two.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_SCRAPE_H
#define SLUICE_BROKER_CORE_STATUS_SCRAPE_H

#include "broker/core/state/state.h"
#include "broker/core/status/stages.h"

struct scraped_workers {
    uint64_t slots, free; /* of those that take jobs */
    uint64_t by_state[WORKER_STATE_COUNT];
};

struct scrape {
    const struct core *core;
    struct exposition out;
    struct scraped_workers workers[STAGE_COUNT];
};

void scrape_workers(struct scrape *scrape);

/* Samples of the family that has begun. */
void scrape_count(struct scrape *scrape, uint64_t value);
void scrape_number(struct scrape *scrape, double value);
void scrape_count_by(struct scrape *scrape, const char *label, const char *is, uint64_t value);
void scrape_count_by_two(struct scrape *scrape, const char *label, const char *is, const char *other,
                         const char *other_is, uint64_t value);
void scrape_histogram_by(struct scrape *scrape, const char *label, struct slice is,
                         const struct observed_bounds *bounds, const struct observed *value);

#endif
