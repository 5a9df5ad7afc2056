/* code_block.h - the commands in a reply: ```bash blocks. Pure. */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_CODE_BLOCK_H
#define SLUICE_WORKERS_AGENTS_FORMATS_CODE_BLOCK_H

#include "common/base/slice.h"

#define FENCE_DONE "TASK_DONE"
#define FENCE_SUBMIT "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

struct code_block {
    size_t blocks;        /* closed ```bash blocks */
    struct slice command; /* inside the first one, borrowed; no newline at its end */
    size_t open_line;     /* of the reply: where a block starts that was never closed; 0: none */
    bool is_thinking;     /* it ends within <think> */
    bool is_done;         /* a line FENCE_DONE outside of blocks */
};

/*
 * A block starts at a line "```bash" (or "```sh", or mini-swe-agent's "```mswea_bash_command") and
 * ends at a line "```"; blanks around them do not matter. Other fences are text. What stands within
 * <think> (which opens at the start of a line) is passed over.
 */
struct code_block code_block_read(const char *reply);

/*
 * Whether a command's output submits the work: its first line, blank ones aside, is FENCE_SUBMIT.
 * *ret_answer is what follows that line.
 */
bool code_block_submits(struct slice output, struct slice *ret_answer);

#endif
