/*
 * openai.c - a server of OpenAI's protocol that is none of the others, or a router in front of
 * one. It is as good as vLLM's /v1/completions where it answers the same: ids in, ids out, and the
 * template and tokenizer by /tokenize (special_token_escape.h). Without ids nothing that it samples could be
 * recorded as it was sampled, so then it is refused, and the sentence says what would do.
 */
#include <errno.h>

#include "workers/engines/dialects/mark.h"
#include "workers/engines/dialects/dialects.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/special_token_escape.h"
#include "workers/engines/dialects/vllm/vllm.h"

#define WOULD_DO                                                                                                       \
    "llama.cpp's server, SGLang (0.5.23) or a recent vLLM would do, without a proxy that "                             \
    "leaves out /tokenize, /detokenize or token ids"

static int openai_describe(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    int error = http_api_model(engine, ret, ret->model_digest, fail);
    if (error < 0)
        return error;
    if (ret->context_tokens == 0)
        return fail_set(fail, -ENOTSUP,
                        "it does not say how long its context is (max_model_len of /v1/models); " WOULD_DO);
    error = special_escape_learn(engine, ret, fail);
    if (error == -EPROTO || error == -EINVAL) {
        fail_wrap(fail, "it does not offer its tokenizer and chat template; " WOULD_DO);
        return -ENOTSUP;
    }
    if (error == 0)
        error = vllm_learn_route(engine, ret, false, fail);
    if (error == -EPROTO) {
        fail_wrap(fail, "/v1/completions does not take token ids and tell the sampled ones "
                        "(return_token_ids) with their log-probabilities; " WOULD_DO);
        return -ENOTSUP;
    }
    snprintf(ret->note, sizeof(ret->note), "/v1/completions");
    return error;
}

static int openai_identify(struct engine *engine, struct engine_mark *ret, struct fail *fail)
{
    return mark_of_served(engine, "", ret, fail);
}

const struct dialect dialect_openai = {
    .name = "openai",
    .doc = "a server of OpenAI's protocol with token ids",
    .describe = openai_describe,
    .identify = openai_identify,
    .apply_template = special_escape_apply_template,
    .render = special_escape_render,
    .tokenize = special_escape_tokenize,
    .detokenize = special_escape_detokenize,
    .say = special_escape_say,
    .generate = vllm_generate,
    .stream = vllm_stream,
    .score = vllm_score,
    .scores_at_once = true,
};
