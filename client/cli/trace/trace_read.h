/* trace_read.h - what `sluice trace` reads: a stream's trajectories, a group's, or one. */
#ifndef SLUICE_CLIENT_CLI_TRACE_TRACE_READ_H
#define SLUICE_CLIENT_CLI_TRACE_TRACE_READ_H

#include "client/cli/trace/trace_sink.h"

/* Each has the sink take every trajectory, says what is wrong, and returns an exit status. */
int trace_read_rollout(struct sluice_client *client, const char *rollout, struct trace_sink *sink);
/* Those of its rollouts that have ended and are kept, the earliest first. */
int trace_read_group(struct sluice_client *client, const char *group, struct trace_sink *sink);
/* From this number (0: the oldest kept) up to what is there now, or with is_live until a signal comes. */
int trace_read_stream(struct sluice_client *client, const char *stream, uint64_t from, struct trace_sink *sink);
/* Whether anything was ever submitted to a stream of this name. */
int trace_is_stream(struct sluice_client *client, const char *name, bool *ret);

#endif
