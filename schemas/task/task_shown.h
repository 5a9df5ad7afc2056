/*
 * task_shown.h - what is shown of a task to the code of others: handlers, and whatever runs in an evaluator's sandbox.
 * Nobody is shown a solution. Those on the agent's side are not shown how they will be judged either.
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_SHOWN_H
#define SLUICE_SCHEMAS_TASK_TASK_SHOWN_H

#include <stdbool.h>

#include "common/base/buffer.h"
#include "common/base/slice.h"

enum task_viewer {
    TASK_VIEWER_EVALUATOR, /* all but `solution`, of the task and of its steps */
    TASK_VIEWER_AGENT      /* neither that nor more of `eval` than its kind; tools, too */
};

/* `json` is one that task_parse has taken. *ret is `json` itself where there is nothing to hide, else in `room`. False:
 * out of memory. */
bool task_shown_to(enum task_viewer viewer, struct slice json, struct buffer *room, struct slice *ret);

#endif
