/*
 * metrics.h - reads what an inference server says of itself at /metrics, in Prometheus' text: lines
 * `name{label="...",...} value` or `name value`, one for each set of labels.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_METRICS_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_METRICS_H

#include <stdbool.h>

/* Of all lines of one name. */
struct metric {
    double sum, most;
};

/* False: `text` has no line of this name, or one whose value is no finite number. */
bool metrics_find(const char *text, const char *name, struct metric *ret);

/*
 * How full the cache of contexts is, of thousand, by the first name of those servers use that is there; the
 * fullest part counts where a server says it of several. False: it does not say.
 */
bool metrics_cache_permille(const char *text, unsigned *ret);

#endif
