/*
 * edit_call.h - one call of the tool `edit`: what edit.c, which changes files, and edit_view.c,
 * which shows them, have in common. Functions return 0 when the model was answered, or negative
 * errno.
 */
#ifndef SLUICE_WORKERS_TOOLS_EDIT_EDIT_CALL_H
#define SLUICE_WORKERS_TOOLS_EDIT_EDIT_CALL_H

#include "workers/tools/edit/edit_file.h"
#include "workers/tools/edit/edit_text.h"
#include "workers/tools/edit/edit_undo.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

struct edit_call {
    struct toolbox *box;
    struct undo *undo;
    const json_t *arguments;
    const char *path; /* as asked */
    struct edit_file file;
    struct buffer plain; /* its text without CRs, where is_crlf */
    bool is_crlf;
    struct tool_result *ret;
    struct fail *fail;
};

#define REFUSE(call, ...) tool_refuse((call)->ret, (call)->fail, __VA_ARGS__)

/* A file that cannot be had is the model's to know; a sandbox that is gone is not. */
int edit_answer_error(struct edit_call *call, int code);

/* 1: the text of the file is there to work with; else as all. */
int edit_load(struct edit_call *call, bool to_write);
struct slice edit_text_of(const struct edit_call *call);

#endif
