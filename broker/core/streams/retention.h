/*
 * core/streams/retention.h - what trajectories are kept, how heavy and how old.
 */
#ifndef SLUICE_BROKER_CORE_STREAMS_RETENTION_H
#define SLUICE_BROKER_CORE_STREAMS_RETENTION_H

#include "broker/core/streams/streams.h"

/* What is kept: a number's weight and time is noted, and, but for restored ones, counted. */
void retention_note(struct core *core, struct stream *stream, uint64_t seq, uint64_t bytes, uint64_t ended_ms);
/* The newest number, just ended, with so many bytes of record. */
void retention_keep(struct core *core, struct stream *stream, uint64_t bytes);
/* Counts what was noted while the stream was restored. */
void retention_restore(struct core *core, struct stream *stream);
/* Numbers up to `seq` are no longer kept; seq is not beyond the head. */
void retention_drop(struct core *core, struct stream *stream, uint64_t seq);
/* The last number that the settings do not let the stream keep; below its first: there is none. Once a head period. */
uint64_t retention_excess(const struct core *core, struct stream *stream);
/* What is kept, weighed again; for checks. */
uint64_t retention_weigh(const struct stream *stream);
/* What became of a number that is no longer kept: "acknowledged", or why not. */
struct slice retention_words(struct core *core, const struct stream *stream, uint64_t seq);

#endif
