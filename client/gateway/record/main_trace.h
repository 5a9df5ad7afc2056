/*
 * main_trace.h - of a rollout's traces the one that stands for it where an API knows only one: that of the main
 * conversation that ends last. Its turns go with the messages in which they were said, where that is known.
 */
#ifndef SLUICE_CLIENT_GATEWAY_RECORD_MAIN_TRACE_H
#define SLUICE_CLIENT_GATEWAY_RECORD_MAIN_TRACE_H

#include "client/sluice.h"

/* NULL: it has none. */
const struct sluice_trace *main_trace(const struct sluice_trajectory *trajectory);
/* Whether it is learned from: any of the turn's tokens has mask 1. */
bool turn_is_learnt(const struct sluice_trace *trace, const struct sluice_turn *turn);
bool turn_is_sampled(const struct sluice_turn *turn);
/* Whether any of the trace's tokens has mask 1. */
bool trace_is_learnt(const struct sluice_trace *trace);
size_t trace_sampled_turns(const struct sluice_trace *trace);
size_t trajectory_sampled_turns(const struct sluice_trajectory *trajectory);
/* NULL: nothing was sampled in it. */
const struct sluice_turn *trace_last_sampled(const struct sluice_trace *trace);

/* A trace's messages: those said in it, or all of the rollout but notes. */
struct trace_words {
    const struct sluice_message **list; /* borrowed, in order */
    size_t count;
    size_t skipped; /* sampled messages in front, which are of earlier traces */
};

/* False: out of memory. */
bool trace_words_read(const struct sluice_trajectory *trajectory, const struct sluice_trace *trace,
                      struct trace_words *ret);
void trace_words_finish(struct trace_words *words);
/* Where the trace's sampled turn `number` (from 0) is said; words->count: it is not known. */
size_t trace_words_of(const struct trace_words *words, size_t number);

#endif
