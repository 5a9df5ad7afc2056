#include "workers/engines/jinja/values/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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

void *jinja_alloc(struct jinja_run *run, size_t size)
{
    if (run->code < 0)
        return NULL;
    if (size > JINJA_BYTES_MAX || run->bytes + size > JINJA_BYTES_MAX) {
        jinja_fail(run, "it makes more than %d MiB", JINJA_BYTES_MAX >> 20);
        return NULL;
    }
    run->bytes += size;
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
    if (++run->steps > JINJA_STEPS_MAX)
        jinja_fail(run, "it takes more than %d steps", JINJA_STEPS_MAX);
    return run->code == 0;
}

void jinja_leave(struct jinja_run *run) { run->depth--; }
