#include "common/metrics/exposition.h"

#include <stdio.h>

/* ---- pieces -------------------------------------------------------------------------- */

static void put(struct exposition *exposition, const char *text) { buffer_append_str(exposition->out, text); }

/* With what each format escapes: a backslash, a line's end and, but in the text format's help, a quote. */
static void put_escaped(struct exposition *exposition, struct slice text, bool quotes)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        const uint8_t byte = text.data[i];
        const char *escaped = byte == '\\' ? "\\\\" : byte == '\n' ? "\\n" : byte == '"' && quotes ? "\\\"" : NULL;
        if (!escaped)
            continue;
        buffer_append(exposition->out, text.data + from, i - from);
        put(exposition, escaped);
        from = i + 1;
    }
    buffer_append(exposition->out, text.data + from, text.len - from);
}

static void put_count(struct exposition *exposition, uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    buffer_append(exposition->out, digits + at, sizeof(digits) - at);
}

/* The shortest of two lengths that reads as the same number. */
static void put_number(struct exposition *exposition, double value)
{
    char text[40];
    if (value != value || value - value != 0) {
        put(exposition, value != value ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    const bool is_whole = value > -1e15 && value < 1e15 && value == (double)(int64_t)value;
    snprintf(text, sizeof(text), is_whole ? "%.0f" : "%.15g", value);
    put(exposition, text);
}

/* A bound as OpenMetrics wants it, 1.0 and not 1. */
static void put_bound(struct exposition *exposition, double bound)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", bound);
    put(exposition, text);
    if (!memchr(text, '.', strlen(text)) && !memchr(text, 'e', strlen(text)))
        put(exposition, ".0");
}

/* Without its brackets. */
static void put_labels(struct exposition *exposition, const struct metric_label *labels, size_t label_count)
{
    for (size_t i = 0; i < label_count; i++) {
        put(exposition, i > 0 ? "," : "");
        put(exposition, labels[i].name);
        put(exposition, "=\"");
        put_escaped(exposition, labels[i].value, true);
        put(exposition, "\"");
    }
}

/* ---- a family ------------------------------------------------------------------------- */

static bool ends_with(struct slice text, struct slice end)
{
    return text.len > end.len && memcmp(text.data + text.len - end.len, end.data, end.len) == 0;
}

/* What OpenMetrics calls it: without the end that samples of its kind have. */
static struct slice family_name(const struct exposition *exposition)
{
    static const char *const ends[] = {[FAMILY_COUNTER] = "_total", [FAMILY_INFO] = "_info"};
    const struct family *family = exposition->family;
    struct slice name = slice_from_str(family->name);
    const bool has_end = family->kind == FAMILY_COUNTER || family->kind == FAMILY_INFO;
    if (!exposition->is_openmetrics || !has_end)
        return name;
    const struct slice end = slice_from_str(ends[family->kind]);
    return ends_with(name, end) ? slice_of(name.data, name.len - end.len) : name;
}

static void put_line(struct exposition *exposition, const char *what, struct slice text, bool quotes)
{
    const struct slice name = family_name(exposition);
    put(exposition, what);
    buffer_append(exposition->out, name.data, name.len);
    put(exposition, " ");
    put_escaped(exposition, text, quotes);
    put(exposition, "\n");
}

/* It is told only where the name ends with it, as OpenMetrics has it. */
static bool has_unit(const struct exposition *exposition)
{
    const struct slice name = family_name(exposition), unit = slice_from_str(exposition->family->unit);
    return exposition->is_openmetrics && unit.len > 0 && ends_with(name, unit) &&
           name.data[name.len - unit.len - 1] == '_';
}

void exposition_begin(struct exposition *exposition, const struct family *family)
{
    static const char *const kinds[] = {[FAMILY_COUNTER] = "counter",
                                        [FAMILY_GAUGE] = "gauge",
                                        [FAMILY_HISTOGRAM] = "histogram",
                                        [FAMILY_INFO] = "info"};
    const bool is_text_info = family->kind == FAMILY_INFO && !exposition->is_openmetrics; /* which knows no info */
    exposition->family = family;
    put_line(exposition, "# HELP ", slice_from_str(family->help), exposition->is_openmetrics);
    put_line(exposition, "# TYPE ", slice_from_str(kinds[is_text_info ? FAMILY_GAUGE : family->kind]), false);
    if (has_unit(exposition))
        put_line(exposition, "# UNIT ", slice_from_str(family->unit), false);
}

/* `end`: of its name. */
static void begin_sample(struct exposition *exposition, const char *end, const struct metric_label *labels,
                         size_t label_count)
{
    put(exposition, exposition->family->name);
    put(exposition, end);
    put(exposition, label_count > 0 ? "{" : "");
    put_labels(exposition, labels, label_count);
    put(exposition, label_count > 0 ? "} " : " ");
}

void exposition_count(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                      uint64_t value)
{
    begin_sample(exposition, "", labels, label_count);
    put_count(exposition, value);
    put(exposition, "\n");
}

void exposition_number(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                       double value)
{
    begin_sample(exposition, "", labels, label_count);
    put_number(exposition, value);
    put(exposition, "\n");
}

/* ---- histograms ------------------------------------------------------------------------- */

/* `start`: name_bucket{labels,le=" */
static void put_bucket(struct exposition *exposition, struct slice start, const double *bound, uint64_t below)
{
    buffer_append(exposition->out, start.data, start.len);
    if (bound)
        put_bound(exposition, *bound);
    else
        put(exposition, "+Inf");
    put(exposition, "\"} ");
    put_count(exposition, below);
    put(exposition, "\n");
}

static void put_buckets(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                        const struct observed_bounds *bounds, const struct observed *value)
{
    struct buffer start = {0};
    struct exposition into = {.out = &start};
    uint64_t below = 0;
    put(&into, exposition->family->name);
    put(&into, "_bucket{");
    put_labels(&into, labels, label_count);
    put(&into, label_count > 0 ? ",le=\"" : "le=\"");
    exposition->out->failed |= start.failed;
    for (size_t i = 0; i <= bounds->count; i++) {
        below += value->counts[i];
        put_bucket(exposition, buffer_peek(&start), i < bounds->count ? &bounds->at[i] : NULL, below);
    }
    buffer_finish(&start);
}

void exposition_histogram(struct exposition *exposition, const struct metric_label *labels, size_t label_count,
                          const struct observed_bounds *bounds, const struct observed *value)
{
    put_buckets(exposition, labels, label_count, bounds, value);
    begin_sample(exposition, "_sum", labels, label_count);
    put_number(exposition, value->sum);
    put(exposition, "\n");
    begin_sample(exposition, "_count", labels, label_count);
    put_count(exposition, observed_count(value));
    put(exposition, "\n");
}

void exposition_end(struct exposition *exposition)
{
    if (exposition->is_openmetrics)
        put(exposition, EXPOSITION_EOF);
}
