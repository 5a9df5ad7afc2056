/* status_streams.h - the streams that a status tells of. */
#ifndef SLUICE_CLIENT_GATEWAY_API_STATUS_STREAMS_H
#define SLUICE_CLIENT_GATEWAY_API_STATUS_STREAMS_H

#include <stdint.h>

#include "common/base/slice.h"

/* status: the broker's JSON. first: the oldest number kept; head: the newest. The name is good during the call. */
void status_streams_each(struct slice status, void (*each)(void *arg, const char *name, uint64_t first, uint64_t head),
                         void *arg);

#endif
