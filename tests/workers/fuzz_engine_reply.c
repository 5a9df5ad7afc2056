/*
 * What an inference server answers: the first byte chooses the status and how a question about
 * one token is answered, the rest is the body. It is refused with a sentence, or is a generation
 * that a record can hold: as many log-probabilities as ids, all finite, text in UTF-8.
 */
#include <errno.h>
#include <math.h>

#include "common/cleanup.h"
#include "common/utf8.h"
#include "tests/fuzz.h"
#include "workers/engines/call.h"
#include "workers/engines/llama_reply.h"

enum { TOKENS_MAX = 64 };

/* A server that answers a question about one token with bytes that end within a character, or not.
 */
static int answer(void *arg, const struct tokens *ids, size_t at, struct llama_score *ret,
                  struct fail *fail)
{
    unsigned how = *(const uint8_t *)arg;
    must(at < ids->count);
    if (how & 8)
        return fail_set(fail, -EIO, "no answer");
    ret->logprob = -0.25f;
    ret->byte_count = how & 16 ? TOKEN_BYTES_MAX : 1 + ids->ids[at] % 3;
    memset(ret->bytes, how & 32 ? 0xf0 : 'x', ret->byte_count);
    return 0;
}

static void check_generation(const struct generation *got)
{
    must(got->sampled.count > 0 && got->sampled.count <= TOKENS_MAX);
    must(strcmp(got->finish, "stop") == 0 || strcmp(got->finish, "length") == 0);
    must(got->text && utf8_is_valid(slice_from_str(got->text)));
    for (size_t i = 0; i < got->sampled.count; i++)
        must(got->sampled.ids[i] <= INT32_MAX && isfinite(got->logprobs[i]) &&
             got->logprobs[i] <= 0);
}

static void read_generation(const json_t *json, const uint8_t *how)
{
    struct generation got = {0};
    struct fail fail = {0};
    struct llama_scorer scorer = {(void *)how, answer};
    json_int_t said = json_integer_value(json_object_get(json, "tokens_evaluated"));
    int error =
        llama_reply_read(json, *how & 4 ? 7 : (size_t)said, TOKENS_MAX, &scorer, &got, &fail);
    must(error <= 0 && (error == 0 || fail.text[0]));
    if (error == 0)
        check_generation(&got);
    generation_finish(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long statuses[] = {200, 400, 503, 418};
    if (size == 0)
        return 0;
    long status = statuses[data[0] & 3];
    AUTO_JSON json_t *json = json_loadb((const char *)data + 1, size - 1, JSON_ALLOW_NUL, NULL);
    struct fail fail = {0};
    struct llama_score score = {0};
    if (status != 200) {
        must(call_refusal(status, json, &fail) < 0 && fail.text[0]);
    } else if (json) {
        read_generation(json, data);
        if (llama_reply_find(json, 7, &score) == 0)
            must(isfinite(score.logprob) && score.logprob <= 0 &&
                 score.byte_count <= TOKEN_BYTES_MAX);
    }
    return 0;
}
