#include "broker/simulate/prefix.h"

void prefix_cache_init(struct prefix_cache *cache, uint64_t max_tokens)
{
    *cache = (struct prefix_cache){.max_tokens = max_tokens};
    list_init(&cache->prefixes);
}

void prefix_keep(struct prefix_cache *cache, struct prefix *prefix, uint64_t tokens)
{
    if (prefix->tokens)
        list_remove(&prefix->link);
    if (tokens > prefix->tokens) {
        cache->used_tokens += tokens - prefix->tokens;
        prefix->tokens = tokens;
    }
    if (prefix->tokens)
        list_push_back(&cache->prefixes, &prefix->link);
}

void prefix_forget(struct prefix_cache *cache, struct prefix *prefix)
{
    if (!prefix->tokens)
        return;
    list_remove(&prefix->link);
    cache->used_tokens -= prefix->tokens;
    prefix->tokens = 0;
}

void prefix_make_room(struct prefix_cache *cache)
{
    struct prefix *prefix;
    LIST_EACH(prefix, &cache->prefixes, link) {
        if (cache->used_tokens <= cache->max_tokens)
            return;
        if (!prefix->in_use)
            prefix_forget(cache, prefix);
    }
}
