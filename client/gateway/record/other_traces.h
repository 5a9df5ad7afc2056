/* other_traces.h - for APIs that tell of one trace of a rollout, the others. */
#ifndef SLUICE_CLIENT_GATEWAY_RECORD_OTHER_TRACES_H
#define SLUICE_CLIENT_GATEWAY_RECORD_OTHER_TRACES_H

#include "client/sluice.h"
#include "common/base/buffer.h"

/* A list of {"label", "reason", "token_ids", "mask", "logprobs"}. told: the one that is left out; NULL: none is. */
void other_traces_append(const struct sluice_trajectory *trajectory, const struct sluice_trace *told,
                         struct buffer *out);

#endif
