/*
 * edit_undo.h - what files were before their last edits, within a bound: the oldest is forgotten
 * first. One list a rollout; it owns its copies.
 */
#ifndef SLUICE_WORKERS_TOOLS_EDIT_EDIT_UNDO_H
#define SLUICE_WORKERS_TOOLS_EDIT_EDIT_UNDO_H

#include "common/base/slice.h"

enum { UNDO_STEPS_MAX = 64, UNDO_BYTES_MAX = 4 << 20 };

struct undo_step {
    char *path;
    uint8_t *before; /* NULL: there was no file */
    size_t before_len;
    uint64_t after; /* undo_mark of what the edit made of it */
};

struct undo {
    struct undo_step steps[UNDO_STEPS_MAX]; /* oldest first */
    size_t count, bytes;
};

/* Tells contents from each other. */
uint64_t undo_mark(struct slice bytes);
/* before.data NULL: there was no file. False: out of memory, or too large to keep; nothing is kept
 * for this path then. */
bool undo_push(struct undo *undo, const char *path, struct slice before, uint64_t after);
/* The last step of a path, borrowed; NULL: there is none. */
const struct undo_step *undo_peek(const struct undo *undo, const char *path);
void undo_drop(struct undo *undo, const struct undo_step *step);
void undo_finish(struct undo *undo);

#endif
