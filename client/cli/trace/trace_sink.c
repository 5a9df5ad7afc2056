#include "client/cli/trace/trace_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/trace/otlp.h"
#include "common/base/cleanup.h"

enum { ROOM_MS = 60000, END_MS = 2 * OTLP_TIMEOUT_MS };

static int failed(const char *what)
{
    cli_say("%s", what);
    return EXITS_FAILED;
}

/* ---- files ------------------------------------------------------------------------------------------- */

static int open_file(struct trace_sink *sink)
{
    sink->out = stdout;
    if (!sink->path)
        return EXITS_OK;
    if (asprintf(&sink->part, "%s.part", sink->path) < 0) {
        sink->part = NULL;
        return failed("out of memory");
    }
    sink->out = fopen(sink->part, "we");
    if (!sink->out)
        cli_say("cannot write %s: %s", sink->part, strerror(errno));
    return sink->out ? EXITS_OK : EXITS_FAILED;
}

static int write_text(const struct trace_sink *sink, const struct buffer *text, bool is_made)
{
    if (!is_made || text->failed)
        return failed("out of memory");
    if (fwrite(text->data, 1, text->len, sink->out) == text->len && !ferror(sink->out) &&
        (!sink->is_live || fflush(sink->out) == 0))
        return EXITS_OK;
    cli_say("cannot write %s: %s", sink->path ? sink->path : "stdout", strerror(errno));
    return EXITS_FAILED;
}

static int close_file(struct trace_sink *sink, bool is_whole)
{
    AUTO_BUFFER text = {0};
    int status = EXITS_OK;
    if (sink->out && is_whole && sink->format == TRACE_PERFETTO)
        status = write_text(sink, &text, perfetto_end(&sink->perfetto, &text));
    if (sink->part && sink->out) {
        const bool is_closed = fclose(sink->out) == 0 && status == EXITS_OK && is_whole;
        if (is_closed && rename(sink->part, sink->path) != 0)
            status = failed(strerror(errno));
        else if (!is_closed)
            remove(sink->part);
    }
    perfetto_finish(&sink->perfetto);
    free(sink->part);
    return status;
}

/* ---- a collector ------------------------------------------------------------------------------------- */

static int open_collector(struct trace_sink *sink)
{
    struct fail fail;
    sink->exporter = otlp_exporter_create(sink->collector, &fail);
    return sink->exporter ? EXITS_OK : failed(fail.text);
}

/* A stream that is read after the fact waits for room; the first batch that is lost ends it. */
static int send(struct trace_sink *sink, const struct sluice_trajectory *trajectory)
{
    struct otlp_counts counts;
    if (!sink->is_live)
        otlp_exporter_await(sink->exporter, OTLP_QUEUE_SPANS / 2, ROOM_MS);
    otlp_exporter_add(sink->exporter, trajectory);
    otlp_exporter_counts(sink->exporter, &counts);
    return !sink->is_live && (counts.dropped_failed || counts.dropped_full) ? EXITS_FAILED : EXITS_OK;
}

static int close_collector(struct trace_sink *sink)
{
    struct otlp_counts counts;
    otlp_exporter_await(sink->exporter, 0, END_MS);
    otlp_exporter_counts(sink->exporter, &counts);
    otlp_exporter_destroy(&sink->exporter);
    const uint64_t lost = counts.taken - counts.sent;
    cli_say("%llu spans of %llu rollouts sent to %s in %llu requests", (unsigned long long)counts.sent,
            (unsigned long long)sink->rollouts, sink->collector, (unsigned long long)counts.requests);
    if (lost)
        cli_say("%llu spans dropped: %s", (unsigned long long)lost, *counts.why ? counts.why : "no answer in time");
    return lost ? EXITS_FAILED : EXITS_OK;
}

/* ---- both ---------------------------------------------------------------------------------------------- */

int trace_sink_open(struct trace_sink *sink)
{
    AUTO_BUFFER text = {0};
    if (sink->collector)
        return open_collector(sink);
    int status = open_file(sink);
    if (status == EXITS_OK && sink->format == TRACE_PERFETTO)
        status = write_text(sink, &text, perfetto_begin(&sink->perfetto, &text));
    return status;
}

int trace_sink_add(struct trace_sink *sink, const struct sluice_trajectory *trajectory)
{
    AUTO_SPANS spans = {0};
    AUTO_BUFFER text = {0};
    sink->rollouts++;
    if (sink->collector)
        return send(sink, trajectory);
    bool is_made = span_list_make(&spans, trajectory);
    if (is_made && sink->format == TRACE_PERFETTO)
        is_made = perfetto_add(&sink->perfetto, &spans, &text);
    else if (is_made)
        is_made = otlp_append_request(&spans, &text) && buffer_append_str(&text, "\n");
    return write_text(sink, &text, is_made);
}

int trace_sink_close(struct trace_sink *sink, bool is_whole)
{
    if (sink->exporter)
        return close_collector(sink);
    return close_file(sink, is_whole);
}
