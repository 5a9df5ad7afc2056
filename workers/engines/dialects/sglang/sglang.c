/*
 * sglang.c - the dialect of SGLang's server: POST /generate with input_ids. Forms read in the
 * sources of SGLang 0.5.23.
 *
 * - Templates and the tokenizer: special_token_escape.h. Releases whose /tokenize takes no messages are
 *   refused with a sentence.
 * - A log-probability is of the logits divided by the temperature, or of the raw ones where the
 *   server runs with SGLANG_RETURN_ORIGINAL_LOGPROB; measured as vLLM's.
 * - What fits is prompt + max_new_tokens < context (older releases) or <= (newer ones): we ask for
 *   what both take.
 * - An abort names a call by the start of its rid: ours are random and of one length, so that none
 *   is the start of another. A call that is cancelled closes its connection, which the server
 *   notices within seconds, and is aborted by name, which it does at once.
 * - An event of a stream has all tokens so far, as many bytes as their number's square, unless the server runs with
 *   --incremental-streaming-output (--stream-output): only then it is streamed. Counts in it are of all so far.
 *   stream_interval of sampling_params: tokens an event, but for the first one and the last.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/mark.h"
#include "workers/engines/dialects/dialects.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/dialects/sampled_check.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/sglang/sglang_reply.h"
#include "workers/engines/dialects/special_token_escape.h"
#include "workers/engines/dialects/streamed.h"
#include "workers/engines/template/encoding.h"
#include "common/loop/loop_now.h"

enum {
    ANSWER_TOKEN_BYTES = 1 << 9,
    STREAM_TOKEN_BYTES = 1 << 12, /* an event says all that an answer says once */
    ANSWER_PROMPT_BYTES = 128     /* a token of the prompt that is scored, or one of its likeliest */
};

/* ---- requests ---------------------------------------------------------------------------- */

struct asking {
    const struct tokens *prompt;
    const struct task_sampling *sampling;
    uint64_t max_tokens, seed_offset;
    bool scores_prompt;
    uint32_t tops;         /* of the likeliest tokens to tell */
    struct teller *teller; /* of a stream; NULL: it is none */
};

struct rid {
    char text[40];
};

static int make_rid(struct rid *ret, struct fail *fail)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return fail_set(fail, -EIO, "no random numbers");
    snprintf(ret->text, sizeof(ret->text), "sluice%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    return 0;
}

static void write_request(const struct asking *asking, const struct engine_info *info, const struct rid *rid,
                          struct buffer *ret)
{
    const struct task_sampling *sampling = asking->sampling;
    buffer_printf(ret,
                  "{\"rid\":\"%s\",\"stream\":%s,\"return_logprob\":true,"
                  "\"logprob_start_len\":%d,\"top_logprobs_num\":%u,\"sampling_params\":{"
                  "\"max_new_tokens\":%llu,\"temperature\":%.17g,\"top_p\":%.17g,"
                  "\"min_p\":%.17g,\"top_k\":%lld,\"presence_penalty\":0,"
                  "\"frequency_penalty\":0,\"repetition_penalty\":1,\"min_new_tokens\":0,"
                  "\"n\":1,\"ignore_eos\":false,\"skip_special_tokens\":false,"
                  "\"spaces_between_special_tokens\":false,\"no_stop_trim\":false,"
                  "\"stop_token_ids\":",
                  rid->text, asking->teller ? "true" : "false", asking->scores_prompt ? 0 : -1, asking->tops,
                  (unsigned long long)asking->max_tokens, sampling->temperature, sampling->top_p, sampling->min_p,
                  sampling->top_k ? (long long)sampling->top_k : -1);
    tokens_write(&info->ends, ret);
    if (asking->teller && !asking->teller->listener)
        buffer_printf(ret, ",\"stream_interval\":%d", ENGINE_ALONG_TOKENS);
    if (sampling->seed >= 0)
        buffer_printf(ret, ",\"sampling_seed\":%llu",
                      (unsigned long long)(((uint64_t)sampling->seed + asking->seed_offset) & INT32_MAX));
    buffer_append_str(ret, "},\"input_ids\":");
    tokens_write(asking->prompt, ret);
    buffer_append_str(ret, "}");
}

/* Does not await: the fiber may be over. */
static void abort_call(struct engine *engine, const struct rid *rid)
{
    AUTO_BUFFER url = {0};
    char body[96];
    buffer_printf(&url, "%s/abort_request", engine->url);
    snprintf(body, sizeof(body), "{\"rid\":\"%s\",\"abort_all\":false}", rid->text);
    AUTO_FREE char *text = buffer_take_str(&url);
    if (text)
        http_forget(engine->http, text, body);
}

static int ask(struct engine *engine, const struct engine_info *info, const struct asking *asking,
               struct streamed_answer *ret, struct fail *fail)
{
    AUTO_BUFFER body = {0};
    struct rid rid;
    int error = make_rid(&rid, fail);
    if (error < 0)
        return error;
    write_request(asking, info, &rid, &body);
    AUTO_FREE char *text = buffer_take_str(&body);
    const struct http_api_call call = {.path = "/generate",
                                       .text = text,
                                       .tokens = asking->max_tokens,
                                       .token_bytes = asking->teller ? STREAM_TOKEN_BYTES : ANSWER_TOKEN_BYTES,
                                       .prompt_bytes = asking->prompt->count * ANSWER_PROMPT_BYTES *
                                                       ((size_t)asking->tops + 1)};
    error = asking->teller ? streamed_sample(engine, &call, &sglang_stream_form, asking->teller, ret, fail)
                           : http_api_sample(engine, &call, &ret->whole, fail);
    if (error == -ECANCELED || error == -ETIMEDOUT)
        abort_call(engine, &rid);
    return error;
}

/* ---- what kind of server it is ----------------------------------------------------------- */

/* Under its newer name, or the older one. */
static int get_info(struct engine *engine, json_t **ret, struct fail *fail)
{
    int error = http_api_get(engine, "/model_info", ret, fail);
    if (error == -ENOTSUP)
        error = http_api_get(engine, "/get_model_info", ret, fail);
    if (error == 0 && !json_is_string(json_object_get(*ret, "tokenizer_path")))
        error = fail_set(fail, -ENOTSUP, "/get_model_info names no tokenizer");
    return error;
}

/* A weight update changes the model's path and its name: neither is what ids mean. */
static int digest_info(const json_t *info, char model_digest[80], struct fail *fail)
{
    static const char *const names[] = {"tokenizer_path", "model_type"};
    return digest_members(info, names, 2, model_digest, fail);
}

/* Under its newer name, or the older one. -ENOTSUP: neither. */
static int get_server_info(struct engine *engine, json_t **ret, struct fail *fail)
{
    int error = http_api_get(engine, "/server_info", ret, fail);
    return error == -ENOTSUP ? http_api_get(engine, "/get_server_info", ret, fail) : error;
}

/* The seed that a server draws at its start, unless it was given one. */
static int ask_start(struct engine *engine, struct engine_start *ret, struct fail *fail)
{
    AUTO_JSON json_t *info = NULL;
    int error = get_server_info(engine, &info, fail);
    if (error < 0 && error != -ENOTSUP)
        return error;
    const json_t *seed = json_object_get(info, "random_seed");
    snprintf(ret->text, sizeof(ret->text), "%lld", (long long)json_integer_value(seed));
    ret->asked_ms = loop_now_ms();
    return 0;
}

static int sglang_identify(struct engine *engine, struct engine_mark *ret, struct fail *fail)
{
    AUTO_JSON json_t *info = NULL;
    struct engine_start start = engine->start;
    char digest[80], more[sizeof(digest) + sizeof(start.text)];
    int error = get_info(engine, &info, fail);
    if (error == 0)
        error = digest_info(info, digest, fail);
    if (error == 0 && loop_now_ms() - start.asked_ms >= START_EVERY_MS)
        error = ask_start(engine, &start, fail);
    if (error < 0)
        return error;
    engine->start = start;
    snprintf(more, sizeof(more), "%s %s", digest, start.text);
    return mark_of_served(engine, more, ret, fail);
}

static int ask_one(struct engine *engine, const struct engine_info *info, double temperature, double *ret_top,
                   struct fail *fail)
{
    const uint32_t ids[] = {info->plain_id, info->plain_id, info->plain_id};
    const struct tokens prompt = {.ids = (uint32_t *)ids, .count = 3};
    const struct task_sampling sampling = {.temperature = temperature, .top_p = 1, .seed = -1};
    struct asking asking = {.prompt = &prompt, .sampling = &sampling, .max_tokens = 1, .tops = 1};
    struct generation got = {0};
    AUTO_STREAMED_ANSWER answer = {0};
    int error = ask(engine, info, &asking, &answer, fail);
    if (error == 0)
        error = sglang_reply_read(&answer.whole.doc, NULL, &prompt, 1, &got, fail);
    if (error == 0 && !sglang_reply_top(&answer.whole.doc, ret_top))
        *ret_top = NAN;
    generation_finish(&got);
    return error;
}

static int learn_mode(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    double one = NAN, two = NAN;
    int error = ask_one(engine, info, 1, &one, fail);
    if (error == 0)
        error = ask_one(engine, info, 2, &two, fail);
    if (error == 0)
        snprintf(info->logprobs_mode, sizeof(info->logprobs_mode), "%s", logprobs_mode_of(one, two));
    return error;
}

/* Whether the events of its streams have their own tokens alone; by its name now, or before. */
static int learn_stream(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    AUTO_JSON json_t *info = NULL;
    int error = get_server_info(engine, &info, fail);
    ret->streams = json_is_true(json_object_get(info, "incremental_streaming_output")) ||
                   json_is_true(json_object_get(info, "stream_output"));
    return error == -ENOTSUP ? 0 : error;
}

static int sglang_describe(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    AUTO_JSON json_t *info = NULL;
    int error = get_info(engine, &info, fail);
    if (error == 0)
        error = digest_info(info, ret->model_digest, fail);
    if (error == 0)
        error = http_api_model(engine, ret, NULL, fail);
    if (error == 0 && ret->context_tokens < 2)
        error = fail_set(fail, -ENOTSUP, "/v1/models has no max_model_len");
    if (error < 0)
        return error;
    ret->context_tokens--;
    error = learn_stream(engine, ret, fail);
    if (error < 0)
        return error;
    snprintf(ret->note, sizeof(ret->note), "/generate%s", ret->streams ? ", streamed" : "");
    error = special_escape_learn(engine, ret, fail);
    if (error == -EPROTO || error == -EINVAL) {
        fail_wrap(fail, "this SGLang does not offer its tokenizer and chat template by POST "
                        "/tokenize, as newer releases do (0.5.23, without --skip-tokenizer-init)");
        return -ENOTSUP;
    }
    return error < 0 ? error : learn_mode(engine, ret, fail);
}

/* ---- sampling ---------------------------------------------------------------------------- */

static int read_answer(const struct asking *asking, struct streamed_answer *answer, struct generation *ret,
                       struct fail *fail)
{
    return sglang_reply_read(&answer->whole.doc, streamed_answer_tokens(answer), asking->prompt, asking->max_tokens,
                             ret, fail);
}

static int sample(struct engine *engine, const struct asking *asking, struct generation *ret, struct fail *fail)
{
    AUTO_STREAMED_ANSWER answer = {0};
    struct fail unread;
    int error = ask(engine, &engine->info, asking, &answer, fail);
    if (error < 0 && answer.whole.text.len > 0 && read_answer(asking, &answer, ret, &unread) < 0)
        generation_finish(ret);
    if (error < 0)
        return error;
    error = read_answer(asking, &answer, ret, fail);
    if (error < 0)
        generation_finish(ret);
    return error < 0 ? error : sampled_check_turn(engine, ret, fail);
}

static int sglang_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                           uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail)
{
    const struct asking asking = {
        .prompt = prompt, .sampling = sampling, .max_tokens = max_tokens, .seed_offset = seed_offset};
    return sample(engine, &asking, ret, fail);
}

static int sglang_stream(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                         uint64_t max_tokens, uint64_t seed_offset, struct teller *teller, struct generation *ret,
                         struct fail *fail)
{
    const int error = engine_learn_tokenizer(engine, fail);
    const struct asking asking = {.prompt = prompt,
                                  .sampling = sampling,
                                  .max_tokens = max_tokens,
                                  .seed_offset = seed_offset,
                                  .teller = engine->info.streams ? teller : NULL};
    return error < 0 ? error : sample(engine, &asking, ret, fail);
}

static int sglang_score(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *ret,
                        struct fail *fail)
{
    const struct task_sampling sampling = {.temperature = 1, .top_p = 1, .seed = -1};
    struct asking asking = {
        .prompt = ids, .sampling = &sampling, .max_tokens = 1, .scores_prompt = true, .tops = ret->top_k};
    AUTO_STREAMED_ANSWER answer = {0};
    int error = ask(engine, &engine->info, &asking, &answer, fail);
    return error < 0 ? error : sglang_reply_scores(&answer.whole.doc, ids, from, ret, fail);
}

const struct dialect dialect_sglang = {
    .name = "sglang",
    .doc = "SGLang's server",
    .describe = sglang_describe,
    .identify = sglang_identify,
    .apply_template = special_escape_apply_template,
    .render = special_escape_render,
    .tokenize = special_escape_tokenize,
    .detokenize = special_escape_detokenize,
    .say = special_escape_say,
    .generate = sglang_generate,
    .stream = sglang_stream,
    .score = sglang_score,
    .scores_at_once = true,
};
