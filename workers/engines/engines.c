/* engines.c - the worker's engines, by their URLs. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"
#include "workers/engines/dialects/dialects.h"
#include "workers/engines/engine.h"
#include "workers/engines/engine_probe.h"
#include "workers/engines/calls.h"
#include "workers/engines/server/identity.h"
#include "workers/engines/template/turn_templates.h"
#include "workers/engines/engines.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/http_login.h"

struct engines {
    struct http *http;
    const struct tokenizers *tokenizers;
    const struct model_dirs *model_dirs;
    struct engine *first;
    void (*probed)(void *arg);
    void *probed_arg;
};

struct engines *engines_create(struct http *http)
{
    struct engines *engines = calloc(1, sizeof(*engines));
    if (engines)
        engines->http = http;
    return engines;
}

void engines_set_tokenizers(struct engines *engines, const struct tokenizers *tokenizers)
{
    engines->tokenizers = tokenizers;
}

void engines_set_model_dirs(struct engines *engines, const struct model_dirs *model_dirs)
{
    engines->model_dirs = model_dirs;
}

static void engine_destroy(struct engine *engine)
{
    turn_templates_finish(engine);
    engine_info_finish(&engine->info);
    engine_connections_finish(engine);
    free(engine->tool_turn);
    free(engine->url);
    free(engine);
}

void engines_destroy(struct engines **engines)
{
    struct engines *old = take_ptr(engines);
    if (!old)
        return;
    while (old->first) {
        struct engine *engine = old->first;
        old->first = engine->next;
        engine_destroy(engine);
    }
    free(old);
}

static struct engine *engine_create(const struct engines *engines, const char *url, size_t len)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return NULL;
    engine->http = engines->http;
    engine->dialects = engine_dialects;
    engine->tokenizers = engines->tokenizers;
    engine->model_dirs = engines->model_dirs;
    TAILQ_INIT(&engine->busy);
    TAILQ_INIT(&engine->idle);
    engine->probed = engines->probed;
    engine->probed_arg = engines->probed_arg;
    engine->url = strndup(url, len);
    if (!engine->url)
        free(take_ptr(&engine));
    return engine;
}

struct engine *engines_get(struct engines *engines, const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    struct engine **at = &engines->first;
    while (*at && !(strlen((*at)->url) == len && memcmp((*at)->url, url, len) == 0))
        at = &(*at)->next;
    if (!*at)
        *at = engine_create(engines, url, len);
    return *at;
}

struct engine *engines_get_given(struct engines *engines, const char *text, struct fail *fail)
{
    struct url url;
    if (url_parse(slice_from_str(text), &url, fail) < 0)
        return NULL;
    struct engine *engine = engines_get(engines, url.base);
    if (engine && engine_set_credentials(engine, url.credentials))
        return engine;
    fail_memory(fail);
    return NULL;
}

void engines_on_probe(struct engines *engines, void (*ended)(void *arg), void *arg)
{
    engines->probed = ended;
    engines->probed_arg = arg;
}

void engines_stop_probes(struct engines *engines)
{
    for (struct engine *engine = engines->first; engine; engine = engine->next)
        if (engine->probe.fiber)
            fiber_cancel(engine->probe.fiber);
}

bool engines_are_probing(const struct engines *engines)
{
    for (const struct engine *engine = engines->first; engine; engine = engine->next)
        if (engine->probe.fiber)
            return true;
    return false;
}

/* ---- what is held there ------------------------------------------------------------------ */

void engine_stay(struct engine_stay *stay, struct engine *engine, uint64_t tokens)
{
    if (stay->engine) {
        stay->engine->use.runs--;
        stay->engine->use.tokens -= stay->tokens;
    }
    *stay = (struct engine_stay){engine, engine ? tokens : 0};
    if (engine) {
        engine->use.runs++;
        engine->use.tokens += tokens;
    }
}

bool engines_are_awaited(const struct engines *engines)
{
    for (const struct engine *engine = engines->first; engine; engine = engine->next)
        if (engine->policy.is_paused && engine->use.calls < engine->told.calls)
            return true;
    return false;
}

static bool is_told(const struct engine *engine)
{
    return engine->is_told && !engine->probe.is_new && strcmp(engine->info.identity, engine->told_identity) == 0 &&
           memcmp(&engine->use, &engine->told, sizeof(engine->use)) == 0;
}

bool engines_tell_next(const struct engines *engines, struct engine_news *ret)
{
    struct engine *engine = engines->first;
    while (engine && is_told(engine))
        engine = engine->next;
    if (!engine)
        return false;
    *ret = (struct engine_news){.engine = engine,
                                .url = engine->url,
                                .use = engine->use,
                                .tokenizer_digest = engine->info.tokenizer_digest,
                                .template_digest = engine->info.identity[0] ? engine->info.template_digest : "",
                                .is_other = strcmp(engine->info.identity, engine->told_identity) != 0,
                                .probe = engine->probe.is_new ? &engine->probe : NULL};
    return true;
}

void engines_tell_done(struct engine *engine)
{
    engine->told = engine->use;
    memcpy(engine->told_identity, engine->info.identity, sizeof(engine->told_identity));
    engine->is_told = true;
    engine->probe.is_new = false;
}

void engines_tell_again(struct engines *engines)
{
    for (struct engine *engine = engines->first; engine; engine = engine->next)
        engine->is_told = false;
}
