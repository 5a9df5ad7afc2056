/* verdict_view.h - a trajectory's verdict as the members of struct sluice_trajectory: parts, metrics and tests. */
#ifndef SLUICE_CLIENT_LIB_STREAM_VERDICT_VIEW_H
#define SLUICE_CLIENT_LIB_STREAM_VERDICT_VIEW_H

#include "client/sluice.h"
#include "schemas/trajectory/verdict.h"

/* All zero bytes: there is none. */
struct verdict_view {
    struct verdict verdict;
    struct sluice_part *parts;
    struct sluice_metric *metrics;
    struct sluice_test *list;
    struct sluice_tests tests;
};

/* False with a refusal (MALFORMED also when out of memory); verdict_view_finish either way. */
bool verdict_view_read(struct verdict_view *view, struct slice bytes, struct refusal *no);
/* Points `out` at what the view holds. */
void verdict_view_show(const struct verdict_view *view, struct sluice_trajectory *out);
void verdict_view_finish(struct verdict_view *view);

#endif
