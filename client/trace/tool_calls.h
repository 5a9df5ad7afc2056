/*
 * tool_calls.h - which of a trajectory's tool calls belongs to which of its turns: the record keeps calls among the
 * messages, and their time with the turns that told their results.
 */
#ifndef SLUICE_CLIENT_TRACE_TOOL_CALLS_H
#define SLUICE_CLIENT_TRACE_TOOL_CALLS_H

#include "client/sluice.h"

struct tool_calls { /* walks over the messages of one trace after the other; each call is given once */
    const struct sluice_trajectory *of;
    bool *is_given; /* of each message */
    const struct sluice_trace *trace;
    size_t stretch, within; /* of a harness's trace: where it is among its messages; of others only `within` counts */
};

/* False when out of memory. */
bool tool_calls_init(struct tool_calls *calls, const struct sluice_trajectory *trajectory);
void tool_calls_finish(struct tool_calls *calls);
/* Before the turns of each trace, in order. */
void tool_calls_enter(struct tool_calls *calls, const struct sluice_trace *trace);
/* At a turn of the assistant: what follows was called by it. */
void tool_calls_pass_reply(struct tool_calls *calls);
/* The next call before the next reply; NULL: there is no more. */
const struct sluice_message *tool_calls_next(struct tool_calls *calls);

#endif
