/* metrics.h - GET /metrics: the broker's metrics (docs/metrics.md), and behind them the gateway's own. */
#ifndef SLUICE_CLIENT_GATEWAY_API_METRICS_H
#define SLUICE_CLIENT_GATEWAY_API_METRICS_H

struct http_call;

/* Whose key is no admin's is refused: the numbers are of all clients together. */
void metrics_run(struct http_call *call);

#endif
