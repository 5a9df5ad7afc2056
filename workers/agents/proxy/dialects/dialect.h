/*
 * dialect.h - how a harness speaks to its model over HTTP: what it may ask (paths and bodies), and how answers, streams
 * and errors are said. One dialect, one file, one row of the table in dialects.c. Pure: bytes in, bytes out.
 *
 * Reading is strict where the meaning hangs on it and blind to what it does not know: an unknown key is passed over, a
 * known key of a wrong type is refused by its path; null is as if it were not there. Refused by name is also what
 * cannot be done, or what would change what the model samples: images and other media, n above 1, stop, a forced
 * tool_choice ("none" leaves the tools out), response_format, tools that run at the provider's (Responses' web_search
 * and custom ones are left out of the tools, for Codex always offers them).
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_DIALECT_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_DIALECT_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/agents/proxy/said.h"

/* What a path asks for. */
enum dialect_ask {
    ASK_TURN,         /* the next turn */
    ASK_COUNT_TOKENS, /* of a prompt, without a turn */
    ASK_MODELS        /* which models there are */
};

/* A call in a reply, as the harness is shown it. */
struct reply_call {
    const char *id, *name;
    const json_t *arguments; /* an object */
};

enum reply_finish { REPLY_STOP, REPLY_LENGTH, REPLY_CALLS };

/* What is said to the harness of a turn; borrowed. Texts that are no UTF-8 are repaired as they are said. */
struct reply {
    const char *id;       /* of the turn: letters, digits, _ and - */
    const char *handle;   /* what the harness must give back to be known again, beside the calls' ids; so made, too */
    const char *model;    /* as it was asked for */
    const char *text;     /* without thinking and calls; may be "" */
    const char *thinking; /* NULL: none */
    const struct reply_call *calls;
    size_t call_count;
    enum reply_finish finish;
    uint64_t prompt_tokens, cached_tokens, sampled_tokens;
    int64_t created; /* seconds since 1970 */
};

/* Where a stream of events is. */
struct reply_stream {
    size_t thought;   /* bytes of the thinking that were told */
    size_t said;      /* and of the text */
    size_t blocks;    /* that were begun: content blocks, output items */
    bool is_open;     /* the last of them, the text's, was not ended */
    bool is_thinking; /* ... or the thinking's */
    size_t sequence;  /* of the next event, where they are numbered */
};

/* Why a request gets no turn; each dialect has its own words for them, and an HTTP status. */
enum reply_error {
    REPLY_INVALID,     /* 400: the request is wrong or asks for what cannot be done */
    REPLY_TOO_LONG,    /* 400: it does not fit the context, or a budget of the task is used up */
    REPLY_ENDED,       /* 403: the rollout has ended */
    REPLY_UNKNOWN,     /* 404: there is no such path */
    REPLY_TOO_LARGE,   /* 413: the body */
    REPLY_UNAVAILABLE, /* 503, with Retry-After: try again */
    REPLY_BROKEN       /* 500: the rollout's own fault */
};

static inline int reply_error_status(enum reply_error error)
{
    static const int statuses[] = {
        [REPLY_INVALID] = 400,   [REPLY_TOO_LONG] = 400,    [REPLY_ENDED] = 403, [REPLY_UNKNOWN] = 404,
        [REPLY_TOO_LARGE] = 413, [REPLY_UNAVAILABLE] = 503, [REPLY_BROKEN] = 500};
    return statuses[error];
}

struct dialect {
    const char *name; /* "chat", "responses", "anthropic", "google" */
    /* Whether it is spoken at that path (no query); *model then is what the path says of it, else NULL: borrowed. */
    bool (*match)(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream, struct slice *model);
    /* -EINVAL with a sentence that names the field; the request is zeroed before and finished by the caller. `body`
     * is no deeper than SAID_DEPTH_MAX, and what is read of it may share its values: it must not be changed. */
    int (*read)(const json_t *body, struct said_request *ret, struct fail *fail);
    /* The whole answer of a request that is no stream: JSON. */
    void (*write)(const struct reply *reply, struct buffer *out);
    /*
     * The same as events: `begin` when the call is taken up (of the reply only id, model, created and prompt_tokens are
     * known, the last perhaps not: 0); `thinking` with each next piece of reply->thinking while it is sampled, `text`
     * with those of reply->text behind it (whole characters; may never be called; the handle is known from the first
     * on, the whole thinking from that of the text on: what was not told of it goes before the text); `end` with all
     * that was not said yet, the last event included. A stream begins as zero bytes.
     */
    void (*stream_begin)(struct reply_stream *stream, const struct reply *reply, struct buffer *out);
    void (*stream_thinking)(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                            struct buffer *out);
    void (*stream_text)(struct reply_stream *stream, const struct reply *reply, struct slice piece, struct buffer *out);
    void (*stream_end)(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out);
    const char *keep_alive; /* what may be said between two events of a stream, and means nothing */
    /* As JSON; in a stream that has begun as its last event. */
    void (*write_error)(enum reply_error error, const char *words, struct buffer *out);
    void (*stream_error)(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out);
    void (*write_count)(uint64_t tokens, struct buffer *out);
};

#endif
