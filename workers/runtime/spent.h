/*
 * spent.h - what a job's time and tokens went to, counted in its fiber where it happens (activity.h has whose it is),
 * and sent with its result. Outside of a job's fiber nothing is counted. What memory is missing for is left out: it is
 * for metrics alone.
 */
#ifndef SLUICE_WORKERS_RUNTIME_SPENT_H
#define SLUICE_WORKERS_RUNTIME_SPENT_H

#include "common/base/buffer.h"
#include "common/metrics/observed.h"

enum { SPENT_TOOLS_MAX = 24 }; /* told apart; calls of further ones are not counted */

struct spent_tool;

struct spent { /* all zero at first */
    uint64_t prompt_tokens, cached_tokens;
    struct observed engine, sandbox;
    struct spent_tool *tools;
};
void spent_finish(struct spent *spent);

/* Of the current fiber. */
void spent_engine_call(double seconds, uint64_t prompt_tokens, uint64_t cached_tokens);
void spent_sandbox_start(double seconds);
void spent_tool_call(const char *name, double seconds);

/* As the field `times` of job.result, not longer than that; nothing where nothing happened. */
void spent_write(const struct spent *spent, struct buffer *out);

#endif
