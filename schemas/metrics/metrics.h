/* metrics.h - the table of the service's metrics (metrics.def). */
#ifndef SLUICE_SCHEMAS_METRICS_METRICS_H
#define SLUICE_SCHEMAS_METRICS_METRICS_H

#include "common/metrics/exposition.h"

enum metric_id {
#define METRIC(writer, id, name, kind, unit, labels, help) METRIC_##id,
#include "schemas/metrics/metrics.def"
#undef METRIC
    METRIC_COUNT
};

enum metric_writer { METRIC_BY_BROKER, METRIC_BY_GATEWAY };

struct metric {
    enum metric_writer writer;
    struct family family;
    const char *labels; /* their names, commas between; "": none */
};

const struct metric *metric_get(enum metric_id id);

/* Of names that others choose, so many are told apart in a label; all beyond are this one. */
enum { METRIC_NAMES_MAX = 32, METRIC_NAME_MAX = 64 };
#define METRIC_OTHER "other"

#endif
