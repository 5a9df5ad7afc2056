#include "client/gateway/api/metrics.h"

#include <stdio.h>

#include "client/gateway/exporting.h"
#include "client/gateway/http_call.h"
#include "common/http/http_server.h"
#include "schemas/metrics/metrics.h"

static bool wants_openmetrics(const struct http_call *call)
{
    const char *accept = exchange_header(call->exchange, "Accept");
    return accept && strstr(accept, "application/openmetrics-text");
}

static void write_requests(struct exposition *to, const struct gateway_counts *counts)
{
    exposition_begin(to, &metric_get(METRIC_HTTP_REQUESTS)->family);
    for (size_t i = 0; i < counts->kinds; i++) {
        char code[16];
        snprintf(code, sizeof(code), "%d", counts->requests[i].status);
        const struct metric_label labels[] = {{"path", slice_from_str(counts->requests[i].pattern)},
                                              {"code", slice_from_str(code)}};
        exposition_count(to, labels, 2, counts->requests[i].count);
    }
    exposition_begin(to, &metric_get(METRIC_HTTP_SECONDS)->family);
    exposition_histogram(to, NULL, 0, &observed_seconds, &counts->seconds);
}

static void write_one(struct exposition *to, enum metric_id id, uint64_t value)
{
    exposition_begin(to, &metric_get(id)->family);
    exposition_count(to, NULL, 0, value);
}

static void write_spans(struct exposition *to, struct exporting *exporting)
{
    struct otlp_counts counts = {0};
    if (exporting)
        exporting_counts(exporting, &counts);
    const struct metric_label sent = {"state", slice_from_str("sent")}, dropped = {"state", slice_from_str("dropped")};
    exposition_begin(to, &metric_get(METRIC_OTLP_SPANS)->family);
    exposition_count(to, &sent, 1, counts.sent);
    exposition_count(to, &dropped, 1, counts.dropped_full + counts.dropped_failed);
}

static void write_own(struct exposition *to, const struct gateway *gateway)
{
    write_requests(to, &gateway->counts);
    write_one(to, METRIC_HTTP_CONNECTIONS, http_server_connections(gateway->server));
    write_one(to, METRIC_SSE_CLIENTS, gateway->counts.sse_clients);
    write_one(to, METRIC_SSE_DROPPED, gateway->counts.sse_dropped);
    write_one(to, METRIC_HTTP_HELD, http_server_held(gateway->server));
    write_spans(to, gateway->exporting);
    exposition_end(to);
}

static void on_metrics(struct http_call *call, const struct answer *answer)
{
    struct buffer body = {0};
    struct exposition to = {.out = &body, .is_openmetrics = wants_openmetrics(call)};
    struct slice text = answer->as.metrics.text;
    const size_t end = strlen(EXPOSITION_EOF);
    if (to.is_openmetrics && text.len >= end && memcmp(text.data + text.len - end, EXPOSITION_EOF, end) == 0)
        text.len -= end;
    buffer_append(&body, text.data, text.len);
    write_own(&to, call->gateway);
    http_call_answer(call, 200, to.is_openmetrics ? EXPOSITION_OPENMETRICS_TYPE : EXPOSITION_TEXT_TYPE, &body);
}

void metrics_run(struct http_call *call)
{
    struct msg_metrics_get in = {.openmetrics = wants_openmetrics(call), .has_openmetrics = wants_openmetrics(call)};
    http_call_ask(call, MSG_metrics_get, &in, on_metrics);
}
