/*
 * words.h - between what a harness says in its dialect and what the model reads and writes: calls and results of tools
 * in the form of the model's (agents/formats). Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_WORDS_H
#define SLUICE_WORKERS_AGENTS_PROXY_WORDS_H

#include "schemas/task/task.h"
#include "workers/agents/conversation/tool_telling.h"
#include "workers/agents/proxy/said.h"

/* ---- a whole conversation ------------------------------------------------------------------------ */

struct words { /* words_finish it */
    struct task_message *messages;
    size_t count;
};

/*
 * As a chat template takes it: one system message, whose end describes the tools; roles user, assistant and, where the
 * template frames results, tool; of user and of system in the middle all that stand together are one message. False:
 * out of memory.
 */
bool words_make(const struct said_request *request, const struct tool_telling *telling, const struct toolbox *box,
                struct words *ret);
void words_finish(struct words *words);

/* ---- what follows a turn --------------------------------------------------------------------------- */

/* Contents of turns in one role; told_finish it. */
struct told {
    enum tell_role role;
    struct buffer *texts;
    struct slice *contents;
    size_t count;
};

/* Results alone each in a turn of the role tool, where the template frames them; else all in one turn of the user's. */
bool told_make(const struct said *messages, size_t count, const struct tool_telling *telling, struct told *ret);
void told_finish(struct told *told);

/* ---- a reply ------------------------------------------------------------------------------------------ */

#define WORDS_BLANKS " \t\r\n" /* at the ends of a text, which are not told */

/* As the harness is to be told it: no text stands in two of these. */
struct heard {      /* heard_finish it */
    char *thinking; /* NULL: none */
    char *text;     /* before the first call; where a call cannot be read, all of it */
    struct tool_reply reply;
};
/*
 * `is_opened`: its prompt ends with the beginning of its thinking. `is_cut`: it ended by its length, and no call in it
 * may be made. False: out of memory.
 */
bool heard_make(const char *text, bool is_opened, bool is_cut, const struct tool_format *format,
                const struct toolbox *box, struct heard *ret);
void heard_finish(struct heard *heard);

#endif
