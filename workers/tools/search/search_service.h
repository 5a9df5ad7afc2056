/*
 * search_service.h - a search of the web over HTTP, from the worker and never from a sandbox. One
 * service, one row: how it is asked and how it answers. Its key goes into one header and nowhere
 * else.
 */
#ifndef SLUICE_WORKERS_TOOLS_SEARCH_SEARCH_SERVICE_H
#define SLUICE_WORKERS_TOOLS_SEARCH_SEARCH_SERVICE_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/runtime/http.h"

enum {
    SEARCH_QUERY_MAX = 400, /* characters; no service takes more */
    SEARCH_KEY_MAX = 1024,
    SEARCH_RESULTS_MAX = 10,
    SEARCH_BODY_MAX = 1 << 20,
    SEARCH_SECONDS_MAX = 20,
};

struct search;

/* `place` is tavily=URL or searxng=URL; `key` may be NULL. -EINVAL with a sentence. */
int search_check(const char *place, const char *key, struct fail *fail);
/* They are copied. NULL: as search_check, or out of memory. */
struct search *search_create(struct http *http, const char *place, const char *key, struct fail *fail);
void search_destroy(struct search **search);

/*
 * Asks, as long as the fiber's deadline allows (SEARCH_SECONDS_MAX is enough); at most `count` results are written as
 * text, each with title, address and an excerpt. *found is their number. Negative errno with a sentence for the model;
 * -ETIMEDOUT and -ECANCELED are the fiber's own, too.
 */
int search_ask(struct search *search, const char *query, size_t count, struct buffer *out, size_t *found,
               struct fail *fail);

#endif
