/* fence.h - the commands in a reply: ```bash blocks. Pure. */
#ifndef SLUICE_WORKERS_FENCE_H
#define SLUICE_WORKERS_FENCE_H

#include "common/slice.h"

#define FENCE_DONE "TASK_DONE"

struct fence {
    size_t blocks;        /* closed ```bash blocks */
    struct slice command; /* inside the first one, borrowed; no newline at its end */
    bool is_open;         /* the last block was never closed */
    bool is_done;         /* a line FENCE_DONE outside of blocks */
};

/*
 * A block starts at a line "```bash" (or "```sh") and ends at a line "```"; blanks around them
 * do not matter. Other fences are text.
 */
struct fence fence_read(const char *reply);

#endif
