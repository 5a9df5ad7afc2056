#include "common/base/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_MIN = 1024 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t used, size;
    alignas(max_align_t) uint8_t bytes[];
};

static size_t round_up(size_t size)
{
    const size_t step = alignof(max_align_t);
    return (size + step - 1) / step * step;
}

bool arena_reserve(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return false;
    size = round_up(size < CHUNK_MIN ? CHUNK_MIN : size);
    struct arena_chunk *chunk = malloc(sizeof(*chunk) + size);
    if (!chunk)
        return false;
    *chunk = (struct arena_chunk){.older = arena->newest, .size = size};
    arena->newest = chunk;
    return true;
}

/* A chunk is at least as large as the one before: many small things need few. */
static bool grow(struct arena *arena, size_t size)
{
    const size_t last = arena->newest ? arena->newest->size : 0;
    return arena_reserve(arena, size > last ? size : last);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = round_up(size);
    struct arena_chunk *chunk = arena->newest;
    if (!chunk || chunk->size - chunk->used < size) {
        if (!grow(arena, size))
            return NULL;
        chunk = arena->newest;
    }
    void *ret = chunk->bytes + chunk->used;
    chunk->used += size;
    return ret;
}

void *arena_zeroed(struct arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size)
        return NULL;
    void *ret = arena_alloc(arena, count * size);
    return ret ? memset(ret, 0, count * size) : NULL;
}

char *arena_text(struct arena *arena, struct slice text)
{
    char *ret = arena_alloc(arena, text.len + 1);
    if (!ret)
        return NULL;
    if (text.len)
        memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return ret;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *ret = len >= 0 ? arena_alloc(arena, (size_t)len + 1) : NULL;
    if (!ret)
        return NULL;
    va_start(args, format);
    vsnprintf(ret, (size_t)len + 1, format, args);
    va_end(args);
    return ret;
}

void arena_finish(struct arena *arena)
{
    while (arena->newest) {
        struct arena_chunk *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
}
