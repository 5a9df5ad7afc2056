/*
 * exporting.h - spans of every rollout that ends, to a collector of OpenTelemetry (--otlp): all streams that the
 * gateway's own key may read are followed, and what ends goes to an exporter that waits for nobody. What ended while no
 * gateway ran is not told.
 */
#ifndef SLUICE_CLIENT_GATEWAY_EXPORTING_H
#define SLUICE_CLIENT_GATEWAY_EXPORTING_H

#include "client/gateway/broker/identities.h"
#include "client/trace/otlp_exporter.h"

struct exporting;

/* NULL with a sentence. */
struct exporting *exporting_open(struct loop *loop, struct identities *identities, const char *url, struct fail *fail);
void exporting_close(struct exporting **exporting);
void exporting_counts(struct exporting *exporting, struct otlp_counts *ret);

#endif
