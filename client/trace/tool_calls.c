#include "client/trace/tool_calls.h"

#include <stdlib.h>
#include <string.h>

bool tool_calls_init(struct tool_calls *calls, const struct sluice_trajectory *trajectory)
{
    *calls = (struct tool_calls){.of = trajectory};
    calls->is_given = calloc(trajectory->message_count + 1, sizeof(*calls->is_given));
    return calls->is_given != NULL;
}

void tool_calls_finish(struct tool_calls *calls)
{
    free(calls->is_given);
    *calls = (struct tool_calls){0};
}

/* The place among the record's messages; message_count behind the last. */
static size_t place(const struct tool_calls *calls)
{
    size_t at = calls->within;
    if (calls->trace->stretch_count)
        at = calls->stretch < calls->trace->stretch_count ? calls->trace->messages[calls->stretch].offset + at
                                                          : calls->of->message_count;
    return at < calls->of->message_count ? at : calls->of->message_count;
}

/* NULL behind the last. */
static const struct sluice_message *message(const struct tool_calls *calls)
{
    const size_t at = place(calls);
    return at < calls->of->message_count ? &calls->of->messages[at] : NULL;
}

static void step(struct tool_calls *calls)
{
    calls->within++;
    if (calls->stretch < calls->trace->stretch_count &&
        calls->within >= calls->trace->messages[calls->stretch].length) {
        calls->stretch++;
        calls->within = 0;
    }
}

static bool is_reply(const struct sluice_message *message)
{
    return message && message->sampled && strcmp(message->role, "assistant") == 0;
}

static void rewind_to(struct tool_calls *calls, const struct sluice_trace *trace)
{
    calls->trace = trace;
    calls->stretch = calls->within = 0;
}

/* A harness's trace has all of its conversation: replies before its own are those that another trace sampled. */
static void skip_earlier(struct tool_calls *calls, const struct sluice_trace *trace)
{
    size_t replies = 0, own = 0;
    for (rewind_to(calls, trace); message(calls); step(calls))
        replies += is_reply(message(calls));
    for (size_t i = 0; i < trace->turn_count; i++)
        own += strcmp(trace->turns[i].role, "assistant") == 0;
    for (rewind_to(calls, trace); replies > own; step(calls))
        replies -= is_reply(message(calls));
}

void tool_calls_enter(struct tool_calls *calls, const struct sluice_trace *trace)
{
    if (trace->stretch_count)
        skip_earlier(calls, trace);
    else
        calls->trace = trace; /* one conversation: it goes on where the trace before ended */
}

void tool_calls_pass_reply(struct tool_calls *calls)
{
    while (message(calls) && !is_reply(message(calls)))
        step(calls);
    if (message(calls))
        step(calls);
}

const struct sluice_message *tool_calls_next(struct tool_calls *calls)
{
    for (const struct sluice_message *at; (at = message(calls)) && !is_reply(at); step(calls)) {
        bool *is_given = &calls->is_given[place(calls)];
        if (!at->tool || *is_given)
            continue;
        *is_given = true;
        step(calls);
        return at;
    }
    return NULL;
}
