/* json_doc_names.c - a name given twice is found by comparing a few, and by hashing many. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/json/json_doc_look.h"
#include "common/base/prng.h"
#include "common/base/cleanup.h"
#include "common/json/json_doc_names.h"

enum { FEW = 16 };

/* The seed is nobody's to know: else a text could be written whose names all fall into one place. */
static uint64_t hash_of(uint64_t seed, struct slice name)
{
    uint64_t hash = prng_mix(seed ^ name.len), word;
    for (size_t at = 0; at < name.len; at += sizeof(word)) {
        const size_t rest = name.len - at;
        word = 0;
        memcpy(&word, name.data + at, rest < sizeof(word) ? rest : sizeof(word));
        hash = prng_mix(hash + seed + word);
    }
    return hash;
}

static bool are_few_unique(const struct slice *names, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (slice_equal(names[i], names[k]))
                return false;
    return true;
}

static int are_many_unique(const struct slice *names, size_t count)
{
    size_t room = 4 * FEW;
    while (room < 2 * count)
        room *= 2;
    AUTO_FREE uint32_t *places = calloc(room, sizeof(*places)); /* 0: free; else an index and 1 */
    uint64_t seed = 0;
    if (!places)
        return -ENOMEM;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uintptr_t)places;
    for (size_t i = 0; i < count; i++) {
        size_t at = hash_of(seed, names[i]) & (room - 1);
        for (; places[at]; at = (at + 1) & (room - 1))
            if (slice_equal(names[places[at] - 1], names[i]))
                return 0;
        places[at] = (uint32_t)i + 1;
    }
    return 1;
}

/* Names as they are meant, those with escapes in `decoded`; false: no memory. */
static bool collect(const struct json_doc *doc, const struct json_doc_node *object, struct slice *names,
                    struct buffer *decoded)
{
    const struct json_doc_node *name = object + 1;
    size_t escaped = 0;
    for (uint32_t i = 0; i < object->count; i++, name = json_doc_behind(doc, name + 1)) {
        names[i] = json_doc_raw(doc, name);
        escaped += name->has_escapes ? names[i].len : 0;
    }
    if (escaped == 0)
        return true;
    if (!buffer_reserve(decoded, escaped)) /* at once, so that no bytes move */
        return false;
    name = object + 1;
    for (uint32_t i = 0; i < object->count; i++, name = json_doc_behind(doc, name + 1)) {
        const size_t from = decoded->len;
        if (name->has_escapes && !json_doc_string(doc, name, decoded))
            return false;
        if (name->has_escapes)
            names[i] = slice_of(decoded->data + from, decoded->len - from);
    }
    return true;
}

int json_doc_names_are_unique(const struct json_doc *doc, const struct json_doc_node *object)
{
    struct slice few[FEW];
    AUTO_FREE struct slice *many = NULL;
    AUTO_BUFFER decoded = {0};
    if (object->count < 2)
        return 1;
    if (object->count > FEW && !(many = calloc(object->count, sizeof(*many))))
        return -ENOMEM;
    if (!collect(doc, object, many ? many : few, &decoded))
        return -ENOMEM;
    return many ? are_many_unique(many, object->count) : are_few_unique(few, object->count);
}
