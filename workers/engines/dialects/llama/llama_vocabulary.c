#include "workers/engines/dialects/llama/llama_vocabulary.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/engines/dialects/http_api.h"

enum {
    VOCABULARY_MAX = 1 << 22,
    VOCABULARY_PART = 1 << 13 /* ids asked for at once */
};

/* How many ids there are; 0: it does not say. */
static int count_vocabulary(struct engine *engine, uint64_t *ret, struct fail *fail)
{
    AUTO_JSON json_t *models = NULL;
    int error = http_api_get(engine, "/v1/models", &models, fail);
    *ret = 0;
    if (error < 0)
        return error == -ENOTSUP ? 0 : error;
    const json_t *first = json_array_get(json_object_get(models, "data"), 0);
    const json_int_t count = json_integer_value(json_object_get(json_object_get(first, "meta"), "n_vocab"));
    *ret = count > 0 && count <= VOCABULARY_MAX ? (uint64_t)count : 0;
    return 0;
}

/* What these ids say, with a plain token behind each, so that none hides where another ends. */
static int read_words(struct engine *engine, uint64_t from, uint64_t to, uint32_t plain_id, struct digest *digest,
                      struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct tokens ids = {0};
    bool has_room = true;
    for (uint64_t id = from; has_room && id < to; id++)
        has_room = tokens_append(&ids, (const uint32_t[]){(uint32_t)id, plain_id}, 2);
    const int error = has_room ? http_api_say(engine, &ids, ids.count, "", (const char *const[]){"content", NULL},
                                              &text, fail)
                               : fail_memory(fail);
    tokens_finish(&ids);
    if (error == 0)
        digest_add(digest, buffer_peek(&text));
    return error;
}

int llama_vocabulary_read(struct engine *engine, struct engine_info *info, char ret_digest[80], struct fail *fail)
{
    ret_digest[0] = '\0';
    int error = count_vocabulary(engine, &info->vocabulary, fail);
    const uint64_t count = info->vocabulary;
    if (error < 0 || count == 0)
        return error;
    struct digest *digest = digest_begin();
    if (!digest)
        return fail_memory(fail);
    for (uint64_t at = 0; error == 0 && at < count; at += VOCABULARY_PART)
        error = read_words(engine, at, at + VOCABULARY_PART < count ? at + VOCABULARY_PART : count, info->plain_id,
                           digest, fail);
    if (error < 0) {
        digest_drop(&digest);
        return error == -EINVAL || error == -EPROTO ? 0 : error;
    }
    return digest_end(&digest, ret_digest) ? 0 : fail_memory(fail);
}
