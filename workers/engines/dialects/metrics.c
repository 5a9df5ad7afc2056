#include "workers/engines/dialects/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The value of the line at `at` if it is one of `name`: what follows the name and its labels. */
static const char *value_of(const char *at, const char *name, size_t len)
{
    if (strncmp(at, name, len) != 0)
        return NULL;
    const char *end = at + len;
    if (*end == '{') {
        const size_t line = strcspn(end, "\n");
        const char *close = memchr(end, '}', line);
        while (close && memchr(close + 1, '}', line - (size_t)(close + 1 - end)))
            close = memchr(close + 1, '}', line - (size_t)(close + 1 - end));
        end = close ? close + 1 : end;
    }
    return *end == ' ' ? end + 1 : NULL;
}

bool metrics_find(const char *text, const char *name, struct metric *ret)
{
    const size_t len = strlen(name);
    struct metric found = {0, -INFINITY};
    for (const char *at = text; at; at = (at = strchr(at, '\n')) ? at + 1 : NULL) {
        const char *value = value_of(at, name, len);
        if (!value)
            continue;
        char *end;
        const double number = strtod(value, &end);
        if (end == value || !isfinite(number))
            return false;
        found.sum += number;
        found.most = number > found.most ? number : found.most;
    }
    if (!isfinite(found.most))
        return false;
    *ret = found;
    return true;
}

/* Each says a part of 1. */
static const char *const cache_names[] = {
    "vllm:kv_cache_usage_perc",      /* vLLM */
    "vllm:gpu_cache_usage_perc",     /* vLLM before 0.10 */
    "sglang:token_usage",            /* SGLang, with --enable-metrics */
    "llamacpp:kv_cache_usage_ratio", /* llama.cpp's server before June 2025, with --metrics */
};

bool metrics_cache_permille(const char *text, unsigned *ret)
{
    struct metric metric;
    for (size_t i = 0; i < sizeof(cache_names) / sizeof(*cache_names); i++)
        if (metrics_find(text, cache_names[i], &metric)) {
            const double part = metric.most < 0 ? 0 : metric.most > 1 ? 1 : metric.most;
            *ret = (unsigned)(part * 1000 + 0.5);
            return true;
        }
    return false;
}
