#include "workers/engines/jinja/values/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void jinja_fail(struct jinja_run *run, const char *format, ...)
{
    char text[400];
    va_list args;
    if (run->code < 0)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    run->code = fail_set(run->fail, -EINVAL, "line %u: %s", run->line, text);
}

static bool count_steps(struct jinja_run *run, size_t steps)
{
    run->steps += steps;
    if (run->steps > JINJA_STEPS_MAX)
        jinja_fail(run, "it takes more than %d steps", JINJA_STEPS_MAX);
    return run->code == 0;
}

bool jinja_spend(struct jinja_run *run, size_t bytes) { return count_steps(run, 1 + bytes / JINJA_BYTES_READ); }

/* Room for so many bytes more. */
static bool count_bytes(struct jinja_run *run, size_t size)
{
    if (size > JINJA_BYTES_MAX || run->bytes + size > JINJA_BYTES_MAX)
        jinja_fail(run, "it makes more than %d MiB", JINJA_BYTES_MAX >> 20);
    if (run->code == 0)
        run->bytes += size;
    return count_steps(run, size / JINJA_BYTES_MADE);
}

void jinja_append(struct jinja_run *run, struct buffer *text, const void *data, size_t len)
{
    if (count_bytes(run, len) && len && !buffer_append(text, data, len))
        run->code = fail_memory(run->fail);
}

void jinja_append_str(struct jinja_run *run, struct buffer *text, const char *words)
{
    jinja_append(run, text, words, strlen(words));
}

void *jinja_alloc(struct jinja_run *run, size_t size)
{
    if (!count_bytes(run, size))
        return NULL;
    void *ret = arena_zeroed(run->arena, 1, size);
    if (!ret)
        run->code = fail_memory(run->fail);
    return ret;
}

bool jinja_enter(struct jinja_run *run, unsigned line)
{
    run->line = line;
    run->depth++;
    if (run->depth > JINJA_DEPTH_MAX)
        jinja_fail(run, "more than %d levels", JINJA_DEPTH_MAX);
    return count_steps(run, 1);
}

void jinja_leave(struct jinja_run *run) { run->depth--; }
