/*
 * What an inference server answers: the first byte chooses the status and how a question about
 * one token is answered, the rest is the body. It is refused with a sentence, or is a generation
 * that a record can hold: as many log-probabilities as ids, all finite, text in UTF-8.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"
#include "common/base/utf8.h"
#include "tests/fuzz.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/dialects/llama/llama_reply.h"
#include "workers/engines/dialects/sglang/sglang_reply.h"
#include "workers/engines/dialects/vllm/vllm_reply.h"

enum { TOKENS_MAX = 64 };

/* A server that answers a question about one token with bytes that end within a character, or not.
 */
static int answer(void *arg, const struct tokens *ids, size_t at, struct llama_score *ret, struct fail *fail)
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
        must(got->sampled.ids[i] <= INT32_MAX && isfinite(got->logprobs[i]) && got->logprobs[i] <= 0);
}

static void read_generation(const struct json_doc *doc, const uint8_t *how)
{
    struct generation got = {0};
    struct fail fail = {0};
    struct llama_scorer scorer = {(void *)how, answer};
    uint32_t said = 0;
    json_doc_id(json_doc_get(doc, json_doc_root(doc), "tokens_evaluated"), &said);
    int error = llama_reply_read(doc, *how & 4 ? 7 : said, TOKENS_MAX, &scorer, &got, &fail);
    must(error <= 0 && (error == 0 || fail.text[0]));
    if (error == 0)
        check_generation(&got);
    generation_finish(&got);
}

typedef int read_reply(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                       uint64_t max_tokens, struct generation *ret, struct fail *fail);

/* The other dialects' readers, of whichever form the answer is. */
static void read_others(const struct json_doc *doc)
{
    static read_reply *const readers[] = {vllm_reply_generate, vllm_reply_complete, sglang_reply_read};
    const uint32_t ids[] = {1, 2, 3};
    const struct tokens prompt = {.ids = (uint32_t *)ids, .count = 3};
    uint32_t top_ids[4];
    float logprobs[2], top_logprobs[4];
    const struct token_scores scores = {
        .logprobs = logprobs, .top_k = 2, .top_ids = top_ids, .top_logprobs = top_logprobs};
    double top;
    for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
        struct generation got = {0};
        struct fail fail = {0};
        int error = readers[i](doc, NULL, &prompt, TOKENS_MAX, &got, &fail);
        must(error <= 0 && (error == 0 || fail.text[0]));
        if (error == 0 && !got.text)
            got.text = strdup("");
        if (error == 0)
            check_generation(&got);
        must(utf8_is_valid(slice_from_str(got.version)));
        generation_finish(&got);
    }
    if (vllm_reply_scores(doc, &prompt, 1, &scores, NULL) == 0 ||
        sglang_reply_scores(doc, &prompt, 1, &scores, NULL) == 0) {
        must(isfinite(logprobs[0]) && logprobs[0] <= 0);
        must(isfinite(top_logprobs[1]) && top_logprobs[1] <= top_logprobs[0] && top_logprobs[0] <= 0);
    }
    vllm_reply_top(doc, &top);
    (void)vllm_reply_mode(doc);
    sglang_reply_top(doc, &top);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long statuses[] = {200, 400, 503, 418};
    if (size == 0)
        return 0;
    long status = statuses[data[0] & 3];
    AUTO_JSON json_t *json = status != 200 ? json_loadb((const char *)data + 1, size - 1, JSON_ALLOW_NUL, NULL) : NULL;
    struct fail fail = {0};
    struct llama_score score = {0};
    struct json_doc doc;
    if (status != 200) {
        must(call_refusal(status, json, &fail) < 0 && fail.text[0]);
        return 0;
    }
    if (json_doc_parse(slice_of(data + 1, size - 1), &doc, &fail) == 0) {
        read_generation(&doc, data);
        read_others(&doc);
        if (llama_reply_find(&doc, 7, &score) == 0)
            must(isfinite(score.logprob) && score.logprob <= 0 && score.byte_count <= TOKEN_BYTES_MAX);
    } else {
        must(fail.text[0]);
    }
    json_doc_finish(&doc);
    return 0;
}
