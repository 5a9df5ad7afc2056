/*
 * otlp_exporter.h - sends spans to a collector, from a thread of its own, and never holds anybody up: what comes when
 * its queue is full is dropped, and counted. A batch is at most 512 spans; an answer may take five seconds; 429, 502,
 * 503 and 504 are tried again, when the collector says (Retry-After) or after a second, two, four ...; any other
 * failure drops the batch. A collector that hangs or is gone costs its spans, nothing else.
 *
 * All functions may be called from any thread but destroy.
 */
#ifndef SLUICE_CLIENT_TRACE_OTLP_EXPORTER_H
#define SLUICE_CLIENT_TRACE_OTLP_EXPORTER_H

#include "client/sluice.h"
#include "common/base/fail.h"

enum {
    OTLP_BATCH_SPANS = 512,
    OTLP_QUEUE_SPANS = 16384,
    OTLP_QUEUE_BYTES = 32 << 20,
    OTLP_TIMEOUT_MS = 5000,
    OTLP_TRIES = 5,
    OTLP_RETRY_LAST_MS = 30000,
    OTLP_WHY_SIZE = 512
};

struct otlp_counts { /* of spans; since the start: taken is the sum of the others, and of those that wait */
    uint64_t taken, sent, dropped_full, dropped_failed;
    uint64_t requests, tried_again;
    char why[OTLP_WHY_SIZE]; /* the last failure, in words; "": none */
};

struct otlp_exporter;

/*
 * url: the collector's, "http://host:4318", to which /v1/traces is added where it has no path; http or https.
 * OTEL_EXPORTER_OTLP_HEADERS ("name=value,name=value") are sent along. NULL with a sentence.
 */
struct otlp_exporter *otlp_exporter_create(const char *url, struct fail *fail);
/* Queues all spans of the trajectory, or drops them all. Never waits. False: they were dropped. */
bool otlp_exporter_add(struct otlp_exporter *exporter, const struct sluice_trajectory *trajectory);
/* Waits until at most `left` spans wait, or the time is over; false then. */
bool otlp_exporter_await(struct otlp_exporter *exporter, size_t left, int64_t timeout_ms);
void otlp_exporter_counts(struct otlp_exporter *exporter, struct otlp_counts *ret);
/* What waits is dropped; a request under way is broken off. NULL-safe. */
void otlp_exporter_destroy(struct otlp_exporter **exporter);

#endif
