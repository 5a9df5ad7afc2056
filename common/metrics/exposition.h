/*
 * exposition.h - families of metrics as what Prometheus reads: its text format 0.0.4, or OpenMetrics 1.0.
 *
 * exposition_begin writes a family's # HELP and # TYPE; all of its samples follow it, then the next begins. Nothing is
 * written of a family without samples but these lines. Values of labels are any UTF-8 and are escaped; names of
 * metrics and labels are the caller's, and right. The two formats differ in what they call a family (OpenMetrics
 * leaves out _total and _info), in # UNIT and in the # EOF of exposition_end. Class bounds are written alike in both,
 * so that a series stays the same.
 *
 * Running out of memory sets the buffer's `failed`.
 */
#ifndef SLUICE_COMMON_METRICS_EXPOSITION_H
#define SLUICE_COMMON_METRICS_EXPOSITION_H

#include "common/base/buffer.h"
#include "common/metrics/observed.h"

#define EXPOSITION_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define EXPOSITION_EOF "# EOF\n" /* ends OpenMetrics: who adds families to a text writes in its place */

enum family_kind {
    FAMILY_COUNTER, /* named ..._total */
    FAMILY_GAUGE,
    FAMILY_HISTOGRAM,
    FAMILY_INFO /* named ..._info; its value is 1 */
};

struct family {
    const char *name; /* as a sample of it is called in the text format, but for a histogram's _bucket and the like */
    enum family_kind kind;
    const char *unit; /* "seconds", "bytes", ...; "": none */
    const char *help; /* one sentence */
};

struct metric_label {
    const char *name;
    struct slice value;
};

struct exposition {
    struct buffer *out; /* appended to */
    bool is_openmetrics;
    const struct family *family;
};

void exposition_begin(struct exposition *exposition, const struct family *family);
void exposition_count(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                      uint64_t value);
void exposition_number(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                       double value);
void exposition_histogram(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                          const struct observed_bounds *bounds, const struct observed *value);
/* After the last family. */
void exposition_end(struct exposition *exposition);

#endif
