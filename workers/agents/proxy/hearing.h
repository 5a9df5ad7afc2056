/*
 * hearing.h - a reply as the harness is to be told it, while it is sampled: what of its thinking and its text is
 * certain already. Whatever follows, heard_make (words.h) finds in the whole reply just this at the beginning of both.
 * Text is held back from where a call may begin, and blanks until something follows them. Each byte is looked at a few
 * times. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HEARING_H
#define SLUICE_WORKERS_AGENTS_PROXY_HEARING_H

#include "common/base/buffer.h"
#include "workers/agents/formats/tool_format.h"

enum hearing_stage {
    HEARING_BEGIN, /* it may begin with thinking */
    HEARING_THINKING,
    HEARING_TEXT,
    HEARING_HELD /* a call may have begun: the rest is told when all is there */
};

struct hearing {                      /* hearing_finish it */
    const struct tool_format *format; /* NULL: there are no tools to call */
    struct buffer text;               /* so far, and a NUL */
    size_t at;                        /* looked at, in this stage */
    enum hearing_stage stage;
    size_t thinking_from, thinking_to; /* certain; the same: there is none */
    size_t text_from, text_to;
};

/* `is_opened`: the prompt ends with the beginning of its thinking. */
void hearing_begin(struct hearing *hearing, const struct tool_format *format, bool is_opened);

/* What became certain; borrowed until the next piece. */
struct hearing_news {
    struct slice thinking, text;
};
/* Whole characters. False: out of memory. */
bool hearing_take(struct hearing *hearing, struct slice piece, struct hearing_news *ret);

/* All of its thinking, once its text has begun; data NULL: it did not think. */
struct slice hearing_thinking(const struct hearing *hearing);
void hearing_finish(struct hearing *hearing);

#endif
