/* trace_sink.h - where `sluice trace` puts what it read: a file of events, lines of OTLP, or a collector. */
#ifndef SLUICE_CLIENT_CLI_TRACE_TRACE_SINK_H
#define SLUICE_CLIENT_CLI_TRACE_TRACE_SINK_H

#include "client/cli/command.h"
#include "client/trace/otlp_exporter.h"
#include "client/trace/perfetto.h"

enum trace_format { TRACE_PERFETTO, TRACE_OTLP };

struct trace_sink { /* all zero but for what is asked for */
    enum trace_format format;
    const char *path;      /* NULL: stdout */
    const char *collector; /* NULL: none */
    bool is_live;          /* what comes is dropped rather than that reading waits for the collector */

    FILE *out;
    char *part; /* the file's name until it is whole */
    struct perfetto perfetto;
    struct otlp_exporter *exporter;
    uint64_t rollouts;
};

/* Each says what is wrong, and returns an exit status. */
int trace_sink_open(struct trace_sink *sink);
int trace_sink_add(struct trace_sink *sink, const struct sluice_trajectory *trajectory);
/* With is_whole the file takes its name; else it is removed. */
int trace_sink_close(struct trace_sink *sink, bool is_whole);

#endif
