#include "workers/tools/edit/edit_undo.h"

#include <stdlib.h>

uint64_t undo_mark(struct slice bytes)
{
    uint64_t mark = 14695981039346656037u ^ bytes.len; /* FNV-1a */
    for (size_t i = 0; i < bytes.len; i++)
        mark = (mark ^ bytes.data[i]) * 1099511628211u;
    return mark;
}

void undo_drop(struct undo *undo, const struct undo_step *step)
{
    size_t at = (size_t)(step - undo->steps);
    undo->bytes -= step->before_len;
    free(step->path);
    free(step->before);
    undo->count--;
    memmove(&undo->steps[at], &undo->steps[at + 1], (undo->count - at) * sizeof(*undo->steps));
}

const struct undo_step *undo_peek(const struct undo *undo, const char *path)
{
    for (size_t i = undo->count; i-- > 0;)
        if (strcmp(undo->steps[i].path, path) == 0)
            return &undo->steps[i];
    return NULL;
}

/* Steps behind a gap would bring back what never was. */
static void forget(struct undo *undo, const char *path)
{
    for (const struct undo_step *step; (step = undo_peek(undo, path));)
        undo_drop(undo, step);
}

bool undo_push(struct undo *undo, const char *path, struct slice before, uint64_t after)
{
    struct undo_step step = {.path = strdup(path), .after = after, .before_len = before.len};
    if (before.data && before.len <= UNDO_BYTES_MAX && (step.before = malloc(before.len + 1)))
        memcpy(step.before, before.data, before.len);
    if (!step.path || (before.data && !step.before)) {
        free(step.path);
        forget(undo, path);
        return false;
    }
    while (undo->count == UNDO_STEPS_MAX || undo->bytes + before.len > UNDO_BYTES_MAX)
        undo_drop(undo, &undo->steps[0]);
    undo->bytes += before.len;
    undo->steps[undo->count++] = step;
    return true;
}

void undo_finish(struct undo *undo)
{
    while (undo->count > 0)
        undo_drop(undo, &undo->steps[undo->count - 1]);
}
