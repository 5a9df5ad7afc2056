#include "workers/runtime/spent.h"

#include <stdlib.h>

#include "schemas/messages/message_max.h"
#include "schemas/metrics/times.h"
#include "workers/runtime/activity.h"

struct spent_tool {
    struct spent_tool *next;
    struct observed times;
    char name[];
};

void spent_finish(struct spent *spent)
{
    for (struct spent_tool *tool = spent->tools, *next; tool; tool = next) {
        next = tool->next;
        free(tool);
    }
    *spent = (struct spent){.tools = NULL};
}

/* ---- counting --------------------------------------------------------------------------- */

static struct spent *current(void)
{
    struct activity *activity = activity_current();
    return activity ? &activity->spent : NULL;
}

void spent_engine_call(double seconds, uint64_t prompt_tokens, uint64_t cached_tokens)
{
    struct spent *spent = current();
    if (!spent)
        return;
    observed_add(&spent->engine, &observed_seconds, seconds);
    spent->prompt_tokens += prompt_tokens;
    spent->cached_tokens += cached_tokens;
}

void spent_sandbox_start(double seconds)
{
    struct spent *spent = current();
    if (spent)
        observed_add(&spent->sandbox, &observed_seconds, seconds);
}

/* NULL where there is no room, or no memory, for another. */
static struct spent_tool *tool_of(struct spent *spent, const char *name)
{
    const size_t len = strlen(name);
    size_t count = 0;
    struct spent_tool **at = &spent->tools;
    for (; *at; at = &(*at)->next, count++)
        if (strcmp((*at)->name, name) == 0)
            return *at;
    if (count == SPENT_TOOLS_MAX || !(*at = calloc(1, sizeof(**at) + len + 1)))
        return NULL;
    memcpy((*at)->name, name, len);
    return *at;
}

void spent_tool_call(const char *name, double seconds)
{
    struct spent *spent = current();
    struct spent_tool *tool = spent ? tool_of(spent, name) : NULL;
    if (tool)
        observed_add(&tool->times, &observed_seconds, seconds);
}

/* ---- telling ------------------------------------------------------------------------------ */

/* What does not fit is left out. */
static void append(struct buffer *out, const char *prefix, const char *name, const struct observed *times)
{
    const size_t before = out->len;
    times_append(out, prefix, name, times);
    if (out->len > MESSAGE_MAX(job_result, times))
        out->len = before;
}

void spent_write(const struct spent *spent, struct buffer *out)
{
    append(out, "", TIMES_ENGINE, &spent->engine);
    append(out, "", TIMES_SANDBOX, &spent->sandbox);
    for (const struct spent_tool *tool = spent->tools; tool; tool = tool->next)
        append(out, TIMES_TOOL, tool->name, &tool->times);
}
