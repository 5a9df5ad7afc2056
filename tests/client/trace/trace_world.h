/* trace_world.h - trajectories by hand: what turns and messages they have. */
#ifndef SLUICE_TESTS_CLIENT_TRACE_TRACE_WORLD_H
#define SLUICE_TESTS_CLIENT_TRACE_TRACE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/trace/spans.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define SAID(seconds_)                                                                                                 \
    {                                                                                                                  \
        .role = "assistant", .finish = "stop", .engine = "http://gpu1", .version = "v1", .masked = "",                 \
        .seconds = (seconds_), .prompt_tokens = 10, .length = 5, .queue_seconds = -1, .prefill_seconds = -1,           \
        .decode_seconds = 0.5                                                                                          \
    }
#define TOLD(role_, seconds_)                                                                                          \
    {                                                                                                                  \
        .role = (role_), .finish = "", .engine = "", .version = "", .masked = "", .seconds = (seconds_),               \
        .queue_seconds = -1, .prefill_seconds = -1, .decode_seconds = -1                                               \
    }
#define REPLY                                                                                                          \
    {                                                                                                                  \
        .role = "assistant", .content = "x", .sampled = true                                                           \
    }
#define TOOL(words)                                                                                                    \
    {                                                                                                                  \
        .role = "tool", .content = "secret", .tool = (words)                                                           \
    }
#define USER                                                                                                           \
    {                                                                                                                  \
        .role = "user", .content = "please"                                                                            \
    }

static inline struct sluice_trajectory trajectory_of(const struct sluice_trace *traces, size_t trace_count,
                                                     const struct sluice_message *messages, size_t message_count)
{
    return (struct sluice_trajectory){.stream = "train",
                                      .rollout = "g/0",
                                      .group = "g",
                                      .task = "t",
                                      .seq = 7,
                                      .outcome = "ok",
                                      .detail = "",
                                      .end = "done",
                                      .agent = "tools",
                                      .engine = "http://gpu1",
                                      .wait_ms = 100,
                                      .init_ms = 200,
                                      .run_ms = 10000,
                                      .eval_ms = 300,
                                      .ended_ms = 1700000000000,
                                      .traces = traces,
                                      .trace_count = trace_count,
                                      .messages = messages,
                                      .message_count = message_count};
}

static inline struct sluice_trace trace_of(const struct sluice_turn *turns, size_t turn_count)
{
    return (struct sluice_trace){.turns = turns, .turn_count = turn_count, .reason = "", .label = ""};
}

/* The `at`-th span of this kind; fails where there are not so many. */
static inline const struct span *span_of(const struct span_list *list, enum span_kind kind, size_t at)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind == kind && at-- == 0)
            return &list->items[i];
    fail_msg("there is no such %s", span_kind_word(kind));
    return NULL;
}

static inline size_t count_of(const struct span_list *list, enum span_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].kind == kind;
    return count;
}

#endif
