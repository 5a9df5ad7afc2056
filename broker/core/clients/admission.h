/*
 * core/clients/admission.h - what follows for a submit from how full the broker is: accepted, accepted
 * with a warning, accepted from some clients only, refused. core/clients/admission.def has the thresholds,
 * core/streams/quotas.h counts.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_ADMISSION_H
#define SLUICE_BROKER_CORE_CLIENTS_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/slice.h"

struct core;
struct call;
struct client;

enum admission {
#define ADMISSION(name, percent, meaning) ADMISSION_##name = percent,
#include "broker/core/clients/admission.def"
#undef ADMISSION
};

enum {
    RETRY_FIRST_MS = 1000,  /* retry_after_ms is not less ... */
    RETRY_LAST_MS = 60000,  /* ... and not more ... */
    RETRY_BLIND_MS = 10000, /* ... nor than this while nothing has ended lately */
    RETRY_DISK_MS = 5000    /* after disk-low */
};

/* Whether a submit for this client (NULL: a new one) fits; refuses it if not. */
bool admission_check(struct core *core, const struct call *call, const struct client *client, uint64_t samples);
/* A sentence once the first threshold is reached, by this client or by all; else empty. */
struct slice admission_warning(struct core *core, const struct client *client);

#endif
