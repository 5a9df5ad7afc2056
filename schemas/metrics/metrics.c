#include "schemas/metrics/metrics.h"

static const struct metric metrics[METRIC_COUNT] = {
#define METRIC(writer_, id_, name_, kind_, unit_, labels_, help_)                                                      \
    [METRIC_##id_] = {.writer = METRIC_BY_##writer_,                                                                   \
                      .family = {.name = name_, .kind = FAMILY_##kind_, .unit = unit_, .help = help_},                 \
                      .labels = labels_},
#include "schemas/metrics/metrics.def"
#undef METRIC
};

const struct metric *metric_get(enum metric_id id) { return &metrics[id]; }
