/* arrays.h - a trace's arrays as JSON. */
#ifndef SLUICE_CLIENT_GATEWAY_RECORD_ARRAYS_H
#define SLUICE_CLIENT_GATEWAY_RECORD_ARRAYS_H

#include "client/sluice.h"
#include "common/base/buffer.h"

void arrays_append_ids(struct buffer *out, const uint32_t *ids, size_t count);
void arrays_append_mask(struct buffer *out, const uint8_t *mask, size_t count);
/* With nine digits, which read back as the same float. */
void arrays_append_logprobs(struct buffer *out, const float *logprobs, size_t count);

#endif
