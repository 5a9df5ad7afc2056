/*
 * reading.h - what the readers of the forms share: where calls begin outside of thinking, where
 * in the reply something stands, and what is said when it cannot be read. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_READING_H
#define SLUICE_WORKERS_AGENTS_FORMATS_READING_H

#include "workers/agents/formats/tool_format.h"
#include "workers/tools/toolbox.h"

#define CALL_TAG "<tool_call>" /* of the forms of Hermes and Qwen */
#define CALL_END "</tool_call>"
#define THINK_TAG "<think>"
#define THINK_END "</think>"

/* A reply on its way through a reader. */
struct reading {
    const struct toolbox *box;
    const char *text; /* all of it */
    const char *at;   /* read so far; outside of thinking and of calls */
    struct tool_reply *reply;
};

/* At the reply's first byte behind thinking that the prompt began: *ret is empty then. */
struct reading reading_start(const struct toolbox *box, const char *text, struct tool_reply *ret);
/*
 * The next `marker` outside of <think>...</think>, which open at the start of a line; NULL: none, and
 * reading->at is where the last text outside of thinking starts.
 */
const char *reading_find(struct reading *reading, const char *marker);

/* The first call begins there; of those behind it nothing is noted. */
void reading_note_begin(struct reading *reading, const char *at);
/* Whether a tag, or what may become it, stands there. */
enum call_start tag_starts(const char *at, const char *tag);

/* Takes name and arguments (its own references). False with reply->wrong, which ends the reading. */
bool reading_add(struct reading *reading, struct slice name, json_t *arguments);
/* The reply cannot be read: the call in hand, the place `at` in it, and why. Returns false. */
bool reading_wrong(struct reading *reading, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Behind thinking that the prompt began: behind a first </think> at the end of a line. */
const char *skip_open_thinking(const char *text);
const char *skip_blanks(const char *at); /* and line ends */
bool starts_with(const char *at, const char *word);

#endif
