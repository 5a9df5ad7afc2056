/*
 * dialect.h - what one kind of inference server must be able to do, and what it says of itself. A dialect is one
 * file and one row of the table in dialects.c. Its functions run in a fiber, try once, and return the errors of
 * engine.h; trying again is calls.h's.
 */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_DIALECT_H
#define SLUICE_WORKERS_ENGINES_SERVER_DIALECT_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "common/base/slice.h"
#include "workers/engines/server/turn.h"

struct engine;
struct teller;

/* An engine may be slow: ten tokens a second are no fault. */
enum { METADATA_TIMEOUT_MS = 30000, GENERATION_TIMEOUT_MS = 600000, GENERATION_TOKEN_MS = 100 };

/* How to read text: special tokens' names as such or as plain text. */
enum tokenize_mode { TOKENIZE_PLAIN, TOKENIZE_SPECIALS };

/*
 * What a server is recognized by, in a request or two: the digest of what it says of itself. Two that have the
 * same are the same server, or, where has_start is not set, as like as could be seen.
 */
struct engine_mark {
    char text[80];
    bool has_start; /* it holds something that is another whenever a server is started */
};
enum { ENGINE_MARKS_MAX = 16 };

/* What a server says of its start, where that costs it something; asked at most once in START_EVERY_MS. */
enum { START_EVERY_MS = 2000 };
struct engine_start {
    char text[64];
    bool is_told;     /* it is another with each start */
    int64_t asked_ms; /* 0: ask now */
};

/*
 * Whether the tokens of a turn that nobody hears are read while it is sampled. It pays where the server tells many in
 * an event, as it is asked to; that is seen on one turn, and meanwhile others are asked for whole.
 */
enum { ENGINE_ALONG_TOKENS = 512 }; /* an event: fewer are read sooner and cost more wakings (bench_engines) */
enum { ENGINE_ALONG_BREAKS = 4 };   /* in a row, and it never pays */
enum engine_along { ENGINE_ALONG_UNKNOWN, ENGINE_ALONG_TRIED, ENGINE_ALONG_PAYS, ENGINE_ALONG_NEVER };

/* Of one server; set by describe. */
struct engine_info {
    uint64_t context_tokens; /* of one request, sampled tokens included */
    char template_digest[80];
    char tokenizer_digest[80]; /* of what it makes of schemas/tokenizer_sample.h */
    char model_digest[80];     /* of what else must stay the same under a rollout */
    char sketch_digest[80];    /* of a conversation in its template's ids; "": its template's text says all */
    char identity[80];         /* of all these; by discovery.c */
    char logprobs_mode[32];    /* of the record: "raw", "processed", "unknown" */
    char model[256];           /* its name, as requests give it where the dialect does; "": it has none */
    char note[256];            /* how it is spoken to, for people: its version, the route */
    bool has_generate;         /* vllm: /inference/v1/generate */
    bool drops_blanks;         /* what it says of ids lacks some of their blanks */
    bool streams;              /* sglang: each event of a stream has its own tokens alone */
    bool is_deaf;              /* a stream went wrong: turns are streamed for nobody who only looks (listener.h) */
    bool refuses_streams;      /* vllm: it was asked for one */
    enum engine_along along;
    unsigned broken_streams; /* in a row, of those that nobody hears */
    struct tokens prefix;    /* what the tokenizer puts in front of every text (BOS) */
    struct tokens ends;      /* ids known to end a turn; grows as they are seen */
    uint64_t vocabulary;     /* ids are below; 0: it does not say */
    uint64_t ids_taken;      /* ids below were seen to be taken (sampled_check.h) */
    uint32_t plain_id;       /* of a token that is plain ASCII text */
    char separator[64];      /* special_token_escape.h: the name of a special token that cuts text; "": none */
    uint32_t separator_id;
};
void engine_info_finish(struct engine_info *info);

struct dialect {
    const char *name, *doc;
    /* -ENOTSUP: some other kind of server; without a sentence where this dialect has nothing to say of it. *ret is
     * empty before, engine_info_finish after. */
    int (*describe)(struct engine *engine, struct engine_info *ret, struct fail *fail);
    /* Who is there now; before describe, too. Never of engine->info. -ENOTSUP as describe. */
    int (*identify)(struct engine *engine, struct engine_mark *ret, struct fail *fail);
    /* The chat template's text for these messages and the generation prompt. */
    int (*apply_template)(struct engine *engine, const struct task_message *messages, size_t count, struct buffer *ret,
                          struct fail *fail);
    /* NULL, or the same as ids: where the engine itself makes them of messages. */
    int (*render)(struct engine *engine, const struct task_message *messages, size_t count, struct tokens *ret,
                  struct fail *fail);
    int (*tokenize)(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                    struct fail *fail);
    int (*detokenize)(struct engine *engine, uint32_t id, struct buffer *ret, struct fail *fail);
    /* What all these say, appended; special tokens by their names. */
    int (*say)(struct engine *engine, const struct tokens *ids, size_t count, struct buffer *ret, struct fail *fail);
    /* max_tokens fits the context. *ret is empty before. */
    int (*generate)(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                    uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail);
    /*
     * NULL, or the same, read and told as it comes: of many tokens at once where nobody hears it (teller.h). Negative:
     * *ret is what was sampled before it broke off.
     */
    int (*stream)(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                  uint64_t max_tokens, uint64_t seed_offset, struct teller *teller, struct generation *ret,
                  struct fail *fail);
    /* NULL, or what ids[from..] are worth, each after all before it; from > 0. -ENOTSUP: this server does not tell. */
    int (*score)(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *ret,
                 struct fail *fail);
    bool scores_at_once; /* of all ids in one request; else each is a request */
    /* NULL, or how many calls it is at. -ENOTSUP: it does not tell. */
    int (*count_calls)(struct engine *engine, uint64_t *ret, struct fail *fail);
};

#endif
