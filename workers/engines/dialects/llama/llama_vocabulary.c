#include "workers/engines/dialects/llama/llama_vocabulary.h"

#include <errno.h>

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
    AUTO_JSON json_t *body = json_object(), *answer = NULL;
    json_t *ids = json_array();
    for (uint64_t id = from; id < to; id++) {
        json_array_append_new(ids, json_integer((json_int_t)id));
        json_array_append_new(ids, json_integer(plain_id));
    }
    if (json_array_size(ids) != 2 * (to - from) || json_object_set_new(body, "tokens", ids) < 0)
        return fail_memory(fail);
    int error = http_api_post(engine, "/detokenize", body, &answer, fail);
    if (error < 0)
        return error;
    const json_t *text = json_object_get(answer, "content");
    if (!json_is_string(text))
        return fail_set(fail, -EPROTO, "the engine's answer to /detokenize has no content");
    digest_add(digest, slice_of(json_string_value(text), json_string_length(text)));
    return 0;
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
