#include "broker/core/status/scrape.h"

void scrape_workers(struct scrape *scrape)
{
    const struct worker *worker;
    LIST_EACH(worker, &scrape->core->workers, link) {
        struct scraped_workers *all = &scrape->workers[worker->stage];
        all->by_state[worker_state_of(worker)]++;
        if (worker_is_out(worker))
            continue;
        all->slots += worker->slots;
        all->free += worker->slots - worker->jobs.count;
    }
}

void scrape_count(struct scrape *scrape, uint64_t value) { exposition_count(&scrape->out, NULL, 0, value); }

void scrape_number(struct scrape *scrape, double value) { exposition_number(&scrape->out, NULL, 0, value); }

void scrape_count_by(struct scrape *scrape, const char *label, const char *is, uint64_t value)
{
    exposition_count(&scrape->out, &(struct metric_label){label, slice_from_str(is)}, 1, value);
}

void scrape_count_by_two(struct scrape *scrape, const char *label, const char *is, const char *other,
                         const char *other_is, uint64_t value)
{
    const struct metric_label labels[] = {{label, slice_from_str(is)}, {other, slice_from_str(other_is)}};
    exposition_count(&scrape->out, labels, 2, value);
}

void scrape_histogram_by(struct scrape *scrape, const char *label, struct slice is,
                         const struct observed_bounds *bounds, const struct observed *value)
{
    exposition_histogram(&scrape->out, &(struct metric_label){label, is}, 1, bounds, value);
}
