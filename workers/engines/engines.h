/*
 * engines.h - the worker's engines, by their URLs, and what its rollouts hold on each, so that the broker can
 * place others: how many there are, the tokens of their contexts, their calls in flight. One thread.
 */
#ifndef SLUICE_WORKERS_ENGINES_ENGINES_H
#define SLUICE_WORKERS_ENGINES_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "workers/engines/server/parts.h"

struct engine;
struct engines;
struct http;
struct model_dirs;
struct tokenizers;

struct engines *engines_create(struct http *http);
void engines_destroy(struct engines **engines);
/* Tokenizers to use where they agree with an engine (encoding.h); borrowed, set before first use. */
void engines_set_tokenizers(struct engines *engines, const struct tokenizers *tokenizers);
/* Models of engines that know ids alone (models/model_dir.h); likewise. */
void engines_set_model_dirs(struct engines *engines, const struct model_dirs *model_dirs);
/* Finds or makes the worker's engine for a base URL; probed at first use. NULL: out of memory. */
struct engine *engines_get(struct engines *engines, const char *url);
/* The same for a URL that a person gave, which may have credentials: they are kept apart. NULL with fail. */
struct engine *engines_get_given(struct engines *engines, const char *url, struct fail *fail);

/* ---- what is held there ---------------------------------------------------------------------- */

/* One rollout's part of it. Begins as all zero; ends with engine NULL. */
struct engine_stay {
    struct engine *engine;
    uint64_t tokens;
};
/* The rollout is on this engine from now on, with a context of so many tokens. */
void engine_stay(struct engine_stay *stay, struct engine *engine, uint64_t tokens);

/* What the broker is to hear of an engine; good until the next await. */
struct engine_news {
    struct engine *engine;
    const char *url;
    struct engine_use use;
    const char *tokenizer_digest, *template_digest; /* of what it serves; the second "": not known yet */
    bool is_other;                                  /* than was told last */
    const struct engine_probe *probe;               /* NULL: none that is new (engine_probe.h) */
};

/*
 * The next engine that was probed, or whose use or identity is another than was told. It counts as told once
 * engines_tell_done is called, before the next call. False: there is none.
 */
bool engines_tell_next(const struct engines *engines, struct engine_news *ret);
void engines_tell_done(struct engine *engine);
/* Nothing counts as told any more. */
void engines_tell_again(struct engines *engines);
/* Whether a paused engine's calls are fewer than the broker was told: it waits for that. */
bool engines_are_awaited(const struct engines *engines);

/* ---- probes (engine_probe.h) ------------------------------------------------------------------------- */

/* Calls `ended` whenever a fiber of one has ended; those fibers are given up, and whether there is one. */
void engines_on_probe(struct engines *engines, void (*ended)(void *arg), void *arg);
void engines_stop_probes(struct engines *engines);
bool engines_are_probing(const struct engines *engines);

#endif
