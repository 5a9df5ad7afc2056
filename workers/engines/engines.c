/* engines.c - the worker's engines, by their URLs. */
#include <stdlib.h>

#include "common/cleanup.h"
#include "workers/engines/dialect.h"

struct engines {
    struct http *http;
    struct engine *first;
};

struct engines *engines_create(struct http *http)
{
    struct engines *engines = calloc(1, sizeof(*engines));
    if (engines)
        engines->http = http;
    return engines;
}

static void engine_destroy(struct engine *engine)
{
    while (engine->frames) {
        struct frame *frame = engine->frames;
        engine->frames = frame->next;
        frame_finish(frame);
        free(frame);
    }
    engine_facts_finish(&engine->facts);
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

static struct engine *engine_create(struct http *http, const char *url, size_t len)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return NULL;
    engine->http = http;
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
        *at = engine_create(engines->http, url, len);
    return *at;
}

const char *engine_url(const struct engine *engine)
{
    return engine->url;
}

const char *engine_logprobs_mode(const struct engine *engine)
{
    return engine->facts.logprobs_mode;
}
