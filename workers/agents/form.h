/*
 * form.h - how a model calls functions in its text: what the prompt shows of them, how a reply is
 * read, how a result is told. A table of forms (forms.c), one file a form. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_FORM_H
#define SLUICE_WORKERS_AGENTS_FORM_H

#include <jansson.h>

#include "common/buffer.h"
#include "workers/tools/tool.h"

enum { FORM_CALLS_MAX = 16, FORM_DEPTH_MAX = 32 };

struct form_call {
    char *name;
    json_t *arguments; /* an object, at most FORM_DEPTH_MAX levels deep */
};

/* What a reply asks for; form_reply_finish it. */
struct form_reply {
    struct form_call calls[FORM_CALLS_MAX];
    size_t count;
    char wrong[512]; /* not "": it cannot be read, and why, for the model; no calls then */
};

struct form {
    const char *name, *doc;
    /* The end of the system message: the functions and how to call them. False: no memory. */
    bool (*describe)(const struct toolbox *box, struct buffer *out);
    /* Any text is a reply; without calls in it, count is 0. */
    void (*read)(const char *text, struct form_reply *ret);
    /* One result of several, in the order of the calls. */
    void (*tell)(const struct tool_result *result, struct buffer *out);
};

const struct form *form_find(const char *name); /* NULL: no such form */
const struct form *form_at(size_t i);           /* NULL: no more */
void form_reply_finish(struct form_reply *reply);

/* ---- for forms --------------------------------------------------------------------------- */

/*
 * Reads one JSON value from the start of `text`, at most FORM_DEPTH_MAX levels deep. *used is where
 * it ends. NULL with a sentence's end in `wrong` ("line 1, column 7: ...").
 */
json_t *form_read_json(struct slice text, size_t *used, char *wrong, size_t size);
/* Takes name and arguments (its own references). False with reply->wrong, which ends the reading. */
bool form_add_call(struct form_reply *reply, const char *name, json_t *arguments);

#endif
