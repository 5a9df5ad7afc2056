/* metric.h - names and numbers of verdicts and records: what of them is refused. Private to this folder's files. */
#ifndef SLUICE_SCHEMAS_TRAJECTORY_METRIC_H
#define SLUICE_SCHEMAS_TRAJECTORY_METRIC_H

#include "schemas/trajectory/trajectory.h"

/* Of the i-th of a list: not empty, at most `max` bytes of UTF-8, no control character. */
bool metric_name_check(const char *list, size_t i, const char *name, size_t max, struct refusal *no);
bool metric_number_check(const char *list, size_t i, const char *key, double value, struct refusal *no);
/* The i-th of these: both, and that its name is none of those before it. */
bool metric_check(const struct record_metric *all, size_t i, struct refusal *no);

/* The refusal of a key of a list's i-th element. Always false. */
bool metric_refuse(struct refusal *no, const char *list, size_t i, const char *key, enum refusal_reason reason,
                   const char *why);

#endif
