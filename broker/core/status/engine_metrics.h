/* core/status/engine_metrics.h - the metrics that are by engine, of registered ones by their URLs. */
#ifndef SLUICE_BROKER_CORE_STATUS_ENGINE_METRICS_H
#define SLUICE_BROKER_CORE_STATUS_ENGINE_METRICS_H

struct scrape;

/* What runs spent on engines; those that are no longer known by `unknown`, if there are such. */
void engine_metrics_turns(struct scrape *scrape);
void engine_metrics_sampled(struct scrape *scrape);
void engine_metrics_prompts(struct scrape *scrape);
void engine_metrics_cached(struct scrape *scrape);
void engine_metrics_call_seconds(struct scrape *scrape);

/* How they are. */
void engine_metrics_calls(struct scrape *scrape);
void engine_metrics_up(struct scrape *scrape);
void engine_metrics_cache(struct scrape *scrape);
void engine_metrics_errors(struct scrape *scrape);

#endif
