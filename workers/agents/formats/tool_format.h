/*
 * tool_format.h - how a model calls functions in its text: what the prompt shows of them, how a call is
 * said, how a reply is read, how a result is told. A table of forms (tool_format.c), one file a form.
 * Pure.
 *
 * Read with tolerance where the meaning is plain; where it is not, nothing is guessed: the reply
 * has no calls then, and words for the model that say what is wrong, where, and what is expected.
 */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_TOOL_FORMAT_H
#define SLUICE_WORKERS_AGENTS_FORMATS_TOOL_FORMAT_H

#include <jansson.h>

#include "common/base/buffer.h"
#include "workers/tools/tool.h"
#include "workers/tools/toolbox.h"

enum { FORM_CALLS_MAX = 16, FORM_DEPTH_MAX = 32, FORM_NAME_MAX = 64 };

struct tool_format_call {
    char *name;
    json_t *arguments; /* an object, at most FORM_DEPTH_MAX levels deep */
};

/* What a reply asks for; tool_reply_finish it. */
struct tool_reply {
    struct tool_format_call calls[FORM_CALLS_MAX];
    size_t count;
    size_t begin;     /* where in the text the first call begins, and nothing else is said behind */
    bool is_open;     /* the last call was not closed: more of it may have been cut off */
    bool is_thinking; /* it ends within <think> */
    const char *note; /* told beside the results: what was passed over; NULL: nothing */
    char wrong[1536]; /* not "": it cannot be read, and why, for the model; no calls then */
};

/* Whether a call begins at a place of a text that goes on. */
enum call_start { CALL_NOT, CALL_MAYBE, CALL_STARTS };

struct tool_format {
    const char *name, *doc;
    const char *marker; /* how a line begins that holds a call of this form and of few others */
    /* The end of the system message: the functions and how to call them. False: no memory. */
    bool (*describe)(const struct toolbox *box, struct buffer *out);
    /* A call as the model should write it. */
    void (*say)(const char *name, const json_t *arguments, struct buffer *out);
    /* Any text is a reply; without calls in it, count is 0. The box says what types values have. */
    void (*read)(const struct toolbox *box, const char *text, struct tool_reply *ret);
    /* Whether one that `read` will find may begin there, whatever follows; CALL_MAYBE: what follows decides. */
    enum call_start (*starts)(const char *text, const char *at);
    /* What templates of its models write around a turn of the role tool; NULL: none do. */
    const char *tool_mark;
    /* One result of several, in the order of the calls, where no template writes what is around it. */
    void (*tell)(const char *name, const struct tool_result *result, struct buffer *out);
};

const struct tool_format *tool_format_find(const char *name); /* NULL: no such form */
const struct tool_format *tool_format_at(size_t i);           /* NULL: no more */

/* Reads a reply: format->read, and what no form takes for a call but each can tell to be one. */
void tool_format_read(const struct tool_format *format, const struct toolbox *box, const char *text,
                      struct tool_reply *ret);
void tool_reply_finish(struct tool_reply *reply);
/* A call of the tool with made-up arguments, as the form has it. False: no memory. */
bool tool_format_example(const struct tool_format *format, const struct tool *tool, struct buffer *out);

#endif
