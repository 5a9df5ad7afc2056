/* toolbox.h - the tools of one rollout. One fiber uses a toolbox, one call at a time. */
#ifndef SLUICE_WORKERS_TOOLS_TOOLBOX_H
#define SLUICE_WORKERS_TOOLS_TOOLBOX_H

#include "workers/tools/tool.h"

struct search; /* the worker's web search: search_service.h */

struct toolbox {
    struct sandbox *sandbox;          /* NULL: none */
    const struct task_limits *limits; /* command_s and output_bytes bound each call */
    struct search *search;            /* NULL: this worker has none */
    struct tool_source *source;       /* of further tools; NULL: there are none */
    /* Told what a command writes while it still runs; may be NULL. Must not await. */
    void (*on_output)(void *arg, struct slice bytes);
    void *on_output_arg;
    /* the rest is toolbox.c's */
    const struct tool *tools[TOOLBOX_MAX];
    void *states[TOOLBOX_MAX];
    bool opened[TOOLBOX_MAX];
    size_t count;
    bool has_acted; /* a call was made in the sandbox */
};

/* Adds a tool by its name. 0; -EINVAL: no such tool, or it is there already or lacks a sandbox;
 * -ENOSYS: this worker cannot offer it; -EOWNERDEAD: no handler does; each with a sentence. */
int toolbox_add(struct toolbox *box, const char *name, struct fail *fail);
/*
 * Checks and makes one call. 0 with *ret (tool_result_finish it) also when the model's call was
 * wrong: an unknown tool, arguments that are not an object or do not fit. Else negative errno.
 */
int toolbox_call(struct toolbox *box, const char *name, const json_t *arguments, struct tool_result *ret,
                 struct fail *fail);
/* The tool of this name, or the one whose name is the most like it; NULL: the box is empty. */
const struct tool *toolbox_nearest(const struct toolbox *box, const char *name);
/* Closes what was opened. NULL-safe where zeroed; never awaits. */
void toolbox_close(struct toolbox *box);

#endif
