/*
 * fold.h - an answer that is streamed (Server-Sent Events, a JSON document each): its tokens are taken event by event
 * (sampled_tokens.h), and the rest is folded into the one document that it would have been at once. What reads such a
 * document reads a stream, too, and one that broke off. A server that does not stream, and answers with the document
 * itself, is read as it is. Pure.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_FOLD_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_FOLD_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/engines/dialects/sampled_tokens.h"

enum { FOLD_ROWS_MAX = 9, FOLD_PATH_MAX = 3 };

/* What of its parts in many events is said in the document. */
enum fold_kind {
    FOLD_WORDS,  /* no part: `before` alone */
    FOLD_TEXT,   /* a string: all in a row */
    FOLD_FIRST,  /* the first, if there is one */
    FOLD_LAST,   /* the last, if there is one */
    FOLD_FINISH, /* the same; it says that the turn has ended */
};

struct fold_row {
    enum fold_kind kind;
    const char *before, *after;      /* in the document */
    const char *path[FOLD_PATH_MAX]; /* of members' names in an event; of a list its first element is meant */
};

struct fold_form {
    struct fold_row rows[FOLD_ROWS_MAX]; /* one without `before` ends them */
    const char *cut;                     /* what FOLD_FINISH is where the turn was cut by its length */
    sampled_tokens_take *take;           /* of an event, or of the document itself */
};

struct fold { /* fold_finish it */
    const struct fold_form *form;
    struct buffer line; /* that is not whole yet; of an answer that is no stream, all of it */
    struct buffer parts[FOLD_ROWS_MAX];
    struct sampled_tokens sampled; /* so far; of an answer that is no stream, none. `most` is the caller's */
    uint64_t events;               /* that told of something */
    bool has_begun;                /* a byte has come */
    bool is_whole;                 /* the answer is no stream */
    bool is_finished;
    bool is_given_up; /* by the server, which says "abort" or "error" for how the turn ended: it has not */
};

/* What an event added; borrowed. */
struct fold_event {
    struct tokens ids; /* sampled */
    struct slice text; /* the server's; empty where it tells none */
    bool is_end;       /* it says that the turn has ended */
};

/*
 * Takes what came next; `told` hears of each event that sampled. -EPROTO: that is no such stream; -ENOMEM; or the error
 * that an event tells of instead, as call.h has them.
 */
int fold_take(struct fold *fold, struct slice bytes, void (*told)(void *arg, const struct fold_event *event), void *arg,
              struct fail *fail);
/* The document so far, appended; where the turn has not ended, as if it had been cut. */
void fold_write(const struct fold *fold, struct buffer *out);
void fold_finish(struct fold *fold);

#endif
