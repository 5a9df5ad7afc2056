#include "workers/engines/template/encoding.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "workers/engines/server/identity.h"
#include "workers/tokenizer/tokenizer.h"

/* ---- those of a worker ------------------------------------------------------------------- */

int tokenizers_add(struct tokenizers *tokenizers, const char *path, struct fail *fail)
{
    if (tokenizers->count == TOKENIZERS_MAX)
        return fail_set(fail, -EINVAL, "more than %d tokenizers", TOKENIZERS_MAX);
    int error = tokenizer_load(path, &tokenizers->list[tokenizers->count], fail);
    if (error < 0)
        return error;
    tokenizers->paths[tokenizers->count++] = path;
    return 0;
}

void tokenizers_finish(struct tokenizers *tokenizers)
{
    while (tokenizers->count > 0)
        tokenizer_destroy(&tokenizers->list[--tokenizers->count]);
}

/* ---- the corpus ---------------------------------------------------------------------------- */

/* Words, scripts, code, blanks and signs, which the texts of the corpus are put together from. */
static const char *const pieces[] = {"the ",
                                     "The",
                                     " quick",
                                     "brown\n",
                                     "FOX's ",
                                     "don't",
                                     "I'LL",
                                     "we've ",
                                     "'s",
                                     " 'd",
                                     "0",
                                     "12",
                                     "345 ",
                                     "67890",
                                     "3.14",
                                     "1e-9",
                                     "\u00bd",
                                     "\u0663",
                                     "\u216b",
                                     " ",
                                     "  ",
                                     "    ",
                                     "\t",
                                     "\n",
                                     "\n\n",
                                     "\r\n",
                                     " \n",
                                     "\n  ",
                                     "\v",
                                     "\u00a0",
                                     "\u2003",
                                     "\u3000",
                                     "(",
                                     ");",
                                     "}\n",
                                     "[]",
                                     " {",
                                     "\"",
                                     "::",
                                     "->",
                                     "!=",
                                     "===",
                                     "...",
                                     "//",
                                     "#",
                                     "$x",
                                     "\\n",
                                     "_a_",
                                     "caf\u00e9",
                                     "stra\u00dfe ",
                                     "\u0395\u03bb\u03bb\u03ac\u03b4\u03b1",
                                     "\u043c\u0438\u0440 ",
                                     "\u4e2d\u6587",
                                     "\u65e5\u672c\u8a9e\u3067\u3059",
                                     "\ud55c\uad6d\uc5b4 ",
                                     "\u0627\u0644\u0633",
                                     "\u0939\u093f\u0928\u094d\u0926\u0940",
                                     "e\u0301",
                                     "\u200b",
                                     "\ufeff",
                                     "\u180e",
                                     "\ufffd",
                                     "\U0001f600",
                                     "\U0001f468\u200d\U0001f469\u200d\U0001f467",
                                     "\u2192",
                                     "\u2264",
                                     "\u2502\u2500",
                                     "def f(x):\n    return x\n",
                                     "{\"a\": [1, 2]}",
                                     "</tag>",
                                     "<|",
                                     "|>",
                                     "$ ls -l\n",
                                     "/usr/bin",
                                     "aaaaaaaaaaaaaaaaaaaaaaaa",
                                     "----------------",
                                     "                                ",
                                     "<think>",
                                     "</think>",
                                     "<tool_call>",
                                     "\x1b[0m",
                                     "\x7f",
                                     "\a",
                                     "\x1f"}; /* the last ODD: some vocabularies have no token for them */

enum { ODD = 4, CORPUS_TEXTS = 24, CORPUS_PIECES = 400, CORPUS_COMPARED_MIN = CORPUS_TEXTS / 2 };

/* The same for every worker, and another for each `text`; one in four has odd ones. */
static void write_text(struct buffer *out, uint32_t text)
{
    const uint32_t count = sizeof(pieces) / sizeof(*pieces) - (text % 4 ? ODD : 0);
    uint32_t state = text * 2654435761u + 1;
    for (int i = 0; i < CORPUS_PIECES; i++) {
        state = state * 1664525u + 1013904223u;
        buffer_append_str(out, pieces[(state >> 16) % count]);
    }
}

/* ---- agreement ----------------------------------------------------------------------------- */

/* How the tokenizers do: texts that came out as the engine's, and whether any did not. */
struct agreement {
    size_t same[TOKENIZERS_MAX];
    bool differs[TOKENIZERS_MAX];
};

static int compare(struct engine *engine, struct slice text, enum tokenize_mode mode, struct agreement *agreement,
                   struct fail *fail)
{
    struct tokens theirs = {0};
    int error = engine->dialect->tokenize(engine, text, mode, &theirs, fail);
    for (size_t i = 0; error == 0 && i < engine->tokenizers->count; i++) {
        struct tokens ours = {0};
        int code = tokenizer_encode(engine->tokenizers->list[i], text, mode == TOKENIZE_SPECIALS, &ours, NULL);
        if (code == 0 && tokens_equal(&ours, &theirs))
            agreement->same[i]++;
        else if (code != -ENOTSUP) /* what it does not do at all the engine will be asked */
            agreement->differs[i] = true;
        tokens_finish(&ours);
    }
    tokens_finish(&theirs);
    return error;
}

static int compare_ends(struct engine *engine, struct agreement *agreement, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    for (size_t i = 0; i < engine->info.ends.count; i++) {
        buffer_append_str(&text, "reply");
        int error = engine->dialect->detokenize(engine, engine->info.ends.ids[i], &text, fail);
        if (error < 0)
            return error;
        buffer_append_str(&text, "\nuser\n");
    }
    int error = text.failed ? fail_memory(fail)
                            : compare(engine, buffer_peek(&text), TOKENIZE_SPECIALS, agreement, fail);
    return error < 0 ? error : compare(engine, buffer_peek(&text), TOKENIZE_PLAIN, agreement, fail);
}

static void choose(struct engine *engine, const struct agreement *agreement)
{
    engine->tokenizer = NULL;
    for (size_t i = 0; i < engine->tokenizers->count && !engine->tokenizer; i++)
        if (!agreement->differs[i] && agreement->same[i] >= CORPUS_COMPARED_MIN) {
            engine->tokenizer = engine->tokenizers->list[i];
            log_event(LOG_INFO, "engine.tokenizer", "url=%s file=%s action=used", engine->url,
                      engine->tokenizers->paths[i]);
        }
    if (!engine->tokenizer)
        log_event(LOG_WARN, "engine.tokenizer", "url=%s reason=disagrees action=engine-is-asked", engine->url);
}

static int learn(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    struct agreement agreement = {0};
    engine->tokenizer = NULL;
    int error = compare_ends(engine, &agreement, fail);
    for (uint32_t i = 0; error == 0 && i < CORPUS_TEXTS; i++) {
        AUTO_BUFFER text = {0};
        write_text(&text, i);
        error = text.failed ? fail_memory(fail) : compare(engine, buffer_peek(&text), TOKENIZE_PLAIN, &agreement, fail);
    }
    if (error == 0)
        choose(engine, &agreement);
    return error;
}

int engine_learn_tokenizer(struct engine *engine, struct fail *fail)
{
    const bool has_any = engine->tokenizers && engine->tokenizers->count > 0;
    return has_any ? engine_learn_once(engine, &engine->compared, learn, engine, fail) : 0;
}

int engine_encode(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                  struct fail *fail)
{
    if (engine->tokenizer && engine->compared.state == SINGLE_FLIGHT_DONE) {
        int code = tokenizer_encode(engine->tokenizer, text, mode == TOKENIZE_SPECIALS, ret, NULL);
        if (code != -ENOTSUP)
            return code < 0 ? fail_set(fail, code, "out of memory") : 0;
    }
    return engine->dialect->tokenize(engine, text, mode, ret, fail);
}
