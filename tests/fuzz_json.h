/* fuzz_json.h - JSON that is mutated by the tree, so that what comes out is JSON still. */
#ifndef SLUICE_TESTS_FUZZ_JSON_H
#define SLUICE_TESTS_FUZZ_JSON_H

#include <jansson.h>

#include "common/base/prng.h"
#include "tests/fuzz.h"

/* A value of any kind. */
static inline json_t *any_value(uint64_t *chance)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "7",
                                         "-1",
                                         "1e300",
                                         "\"\"",
                                         "\"a\\u0000\\nb\"",
                                         "[]",
                                         "{}",
                                         "[[]]",
                                         "{\"type\":\"text\",\"text\":\"x\"}",
                                         "[{\"type\":\"text\",\"text\":\"x\"}]",
                                         "\"assistant\"",
                                         "\"user\"",
                                         "\"tool\"",
                                         "\"model\"",
                                         "\"function_call\"",
                                         "\"reasoning\"",
                                         "\"tool_result\"",
                                         "\"namespace\"",
                                         "\"{\\\"a\\\":1}\""};
    return json_loads(values[prng_next(chance) % (sizeof(values) / sizeof(*values))], JSON_DECODE_ANY | JSON_ALLOW_NUL,
                      NULL);
}

static inline json_t *mutate_list(json_t *list, uint64_t *chance)
{
    const size_t count = json_array_size(list), at = count ? prng_next(chance) % count : 0;
    switch (prng_next(chance) % 4) {
    case 0: json_array_remove(list, at); break;
    case 1: json_array_insert_new(list, at, any_value(chance)); break;
    case 2: json_array_append_new(list, json_deep_copy(json_array_get(list, at))); break;
    default:
        json_array_insert_new(list, at, json_deep_copy(json_array_get(list, prng_next(chance) % (count + 1))));
        break;
    }
    return list;
}

/* The value, changed somewhere; takes it. */
static inline json_t *mutate_value(json_t *value, uint64_t *chance)
{
    const size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    if (count == 0 || prng_next(chance) % 12 == 0) {
        json_decref(value);
        return any_value(chance);
    }
    if (json_is_array(value)) {
        const size_t at = prng_next(chance) % count;
        if (prng_next(chance) % 6 == 0)
            return mutate_list(value, chance);
        json_array_set_new(value, at, mutate_value(json_deep_copy(json_array_get(value, at)), chance));
        return value;
    }
    void *iter = json_object_iter(value);
    for (size_t at = prng_next(chance) % count; at > 0; at--)
        iter = json_object_iter_next(value, iter);
    char key[256];
    snprintf(key, sizeof(key), "%s", json_object_iter_key(iter));
    if (prng_next(chance) % 10 == 0)
        json_object_del(value, key);
    else
        json_object_set_new(value, key, mutate_value(json_deep_copy(json_object_get(value, key)), chance));
    return value;
}

/* Of an input of `head` bytes and a JSON text: now and then by the bytes, else by the tree. */
static inline size_t mutate_json(uint8_t *data, size_t size, size_t max_size, size_t head, unsigned seed)
{
    uint64_t chance = seed;
    json_t *body = size > head && prng_next(&chance) % 8
                       ? json_loadb((char *)data + head, size - head, JSON_ALLOW_NUL, NULL)
                       : NULL;
    if (!body)
        return LLVMFuzzerMutate(data, size, max_size);
    body = mutate_value(body, &chance);
    char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
    const size_t len = text ? strlen(text) : 0;
    if (len > 0 && head + len < max_size) {
        memcpy(data + head, text, len);
        size = head + len;
    }
    free(text);
    json_decref(body);
    return size;
}

#endif
