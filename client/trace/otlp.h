/*
 * otlp.h - spans as OpenTelemetry has them: OTLP/HTTP in JSON, attributes by the conventions for generative AI
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/, of the version below; they are in development), and Sluice's
 * own as `sluice.*`. A rollout is one trace: its id is of the rollout's name, so that what is sent twice, or by two
 * programs, is the same trace. No content of messages is in it: of tools the name, not the arguments.
 */
#ifndef SLUICE_CLIENT_TRACE_OTLP_H
#define SLUICE_CLIENT_TRACE_OTLP_H

#include "client/trace/spans.h"
#include "common/base/buffer.h"

#define OTLP_SCHEMA "https://opentelemetry.io/schemas/1.37.0"

/* One span of the list as a JSON object, appended. False when out of memory. */
bool otlp_append_span(const struct span_list *spans, size_t at, struct buffer *out);
/* What stands before the spans of a request, with a comma between each two, and behind them. */
bool otlp_append_head(struct buffer *out);
bool otlp_append_tail(struct buffer *out);
/* A whole request with all spans of the list, on one line. */
bool otlp_append_request(const struct span_list *spans, struct buffer *out);

#endif
