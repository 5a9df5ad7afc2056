/*
 * vllm.c - the dialect of vLLM's server. Forms read in the sources of vLLM 0.32.0, and seen on it.
 *
 * - Ids go to /inference/v1/generate where it is offered (--enable-scale-out), else as the prompt
 *   of /v1/completions with return_token_ids. Which one is asked once, with one token.
 * - Templates and the tokenizer: special_token_escape.h.
 * - Every setting is sent: the server's defaults come from the model's generation_config.json.
 * - A log-probability is of raw logits or of processed ones, as --logprobs-mode says, which no
 *   route of vLLM's tells. So it is measured: the likeliest token's at two temperatures differs only
 *   if processed. A bridge (client/python/sluice/bridge) knows no likeliest token, and says it.
 * - The route for ids tells no text: where /detokenize drops blanks, completions are taken.
 * - A sampled end of turn stands among the ids of a turn that stopped, never in one cut by length.
 * - prompt + max_tokens beyond max_model_len is refused, so we ask only for what fits.
 * - A call whose connection closes is aborted.
 * - A stream tells of each event's own tokens, of its prompt's ids in the first one alone, of versions in the last one,
 *   and of how many tokens there were in one more. The route for ids tells no text: without a tokenizer of the
 *   worker's it is not streamed.
 * - The policy's version is the salt of its prefix cache (cache_salt, not empty), so that what older weights computed
 *   is not taken for the newer ones'. Servers that have none ignore it, as any member that they do not know.
 */
#include "workers/engines/dialects/mark.h"
#include "workers/engines/dialects/vllm/vllm.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/dialects/dialects.h"
#include "workers/engines/dialects/sampled_check.h"
#include "workers/engines/dialects/metrics.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/special_token_escape.h"
#include "workers/engines/dialects/streamed.h"
#include "workers/engines/dialects/vllm/vllm_reply.h"
#include "workers/engines/server/identity.h"
#include "workers/engines/template/encoding.h"
#include "common/loop/loop_now.h"

enum {
    ANSWER_TOKEN_BYTES = 1 << 10, /* a token of the answer with its entry; usually 130, in a stream 350 */
    ANSWER_PROMPT_BYTES = 256 /* a token of the prompt, which may come back with its entry, or one of its likeliest */
};

/* ---- requests ---------------------------------------------------------------------------- */

static const char route_generate[] = "/inference/v1/generate", route_complete[] = "/v1/completions";

struct asking {
    const struct tokens *prompt;
    const struct task_sampling *sampling;
    uint64_t max_tokens, seed_offset;
    bool has_prompt_logprobs;
    uint32_t prompt_tops;  /* of these, too, the likeliest tokens to tell */
    int tops;              /* of the likeliest tokens to tell; the first of them is the sampled one */
    struct teller *teller; /* of a stream; NULL: it is none */
};

/* Members of both routes, the stop ids' among them. */
static void write_sampling(const struct asking *asking, const struct engine_info *info, struct buffer *ret)
{
    const struct task_sampling *sampling = asking->sampling;
    buffer_printf(ret,
                  "\"max_tokens\":%llu,\"temperature\":%.17g,\"top_p\":%.17g,\"min_p\":%.17g,"
                  "\"top_k\":%lld,\"presence_penalty\":0,\"frequency_penalty\":0,"
                  "\"repetition_penalty\":1,\"n\":1,\"min_tokens\":0,\"ignore_eos\":false,"
                  "\"skip_special_tokens\":false,\"spaces_between_special_tokens\":false,"
                  "\"logprobs\":%d,\"stop_token_ids\":",
                  (unsigned long long)asking->max_tokens, sampling->temperature, sampling->top_p, sampling->min_p,
                  sampling->top_k ? (long long)sampling->top_k : -1, asking->tops);
    tokens_write(&info->ends, ret);
    if (asking->has_prompt_logprobs)
        buffer_printf(ret, ",\"prompt_logprobs\":%u", asking->prompt_tops);
    if (sampling->seed >= 0)
        buffer_printf(ret, ",\"seed\":%llu",
                      (unsigned long long)(((uint64_t)sampling->seed + asking->seed_offset) & INT64_MAX));
}

static void write_stream(const struct asking *asking, struct buffer *ret)
{
    buffer_append_str(ret, asking->teller ? "\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                                          : "\"stream\":false,");
}

static void write_interval(const struct asking *asking, struct buffer *ret)
{
    if (asking->teller && !asking->teller->listener)
        buffer_printf(ret, "\"stream_interval\":%d,", ENGINE_ALONG_TOKENS);
}

static void write_generate(const struct asking *asking, const struct engine_info *info, struct buffer *ret)
{
    write_stream(asking, ret);
    buffer_append_str(ret, "\"sampling_params\":{\"detokenize\":false,");
    write_interval(asking, ret);
    write_sampling(asking, info, ret);
    buffer_append_str(ret, "},\"token_ids\":");
    tokens_write(asking->prompt, ret);
    buffer_append_str(ret, "}");
}

static void write_complete(const struct asking *asking, const struct engine_info *info, struct buffer *ret)
{
    write_stream(asking, ret);
    write_interval(asking, ret);
    buffer_append_str(ret, "\"echo\":false,\"return_token_ids\":true,"
                           "\"return_tokens_as_token_ids\":true,\"add_special_tokens\":false,");
    write_sampling(asking, info, ret);
    buffer_append_str(ret, ",\"prompt\":");
    tokens_write(asking->prompt, ret);
    buffer_append_str(ret, "}");
}

static int ask(struct engine *engine, const struct engine_info *info, const struct asking *asking,
               struct streamed_answer *ret, struct fail *fail)
{
    AUTO_BUFFER body = {0};
    buffer_append_str(&body, "{");
    http_api_write_text("model", info->model, &body);
    http_api_write_text("cache_salt", engine->policy.version, &body);
    (info->has_generate ? write_generate : write_complete)(asking, info, &body);
    AUTO_FREE char *text = buffer_take_str(&body);
    const struct http_api_call call = {.path = info->has_generate ? route_generate : route_complete,
                                       .text = text,
                                       .tokens = asking->max_tokens,
                                       .token_bytes = ANSWER_TOKEN_BYTES,
                                       .prompt_bytes = asking->prompt->count * ANSWER_PROMPT_BYTES *
                                                       ((size_t)asking->prompt_tops + 1)};
    return asking->teller
               ? streamed_sample(engine, &call, info->has_generate ? &vllm_stream_generate : &vllm_stream_complete,
                                 asking->teller, ret, fail)
               : http_api_sample(engine, &call, &ret->whole, fail);
}

/* ---- what kind of server it is ----------------------------------------------------------- */

/* One token after a few plain ones, at this temperature. */
static int ask_one(struct engine *engine, const struct engine_info *info, double temperature,
                   struct streamed_answer *ret, struct fail *fail)
{
    const uint32_t ids[] = {info->plain_id, info->plain_id, info->plain_id};
    const struct tokens prompt = {.ids = (uint32_t *)ids, .count = 3};
    const struct task_sampling sampling = {.temperature = temperature, .top_p = 1, .seed = 1};
    struct asking asking = {.prompt = &prompt, .sampling = &sampling, .max_tokens = 1, .tops = 2};
    int error = ask(engine, info, &asking, ret, fail);
    struct generation got = {0};
    if (error == 0)
        error = (info->has_generate ? vllm_reply_generate : vllm_reply_complete)(&ret->whole.doc, NULL, &prompt, 1,
                                                                                 &got, fail);
    generation_finish(&got);
    return error;
}

static int learn_mode(struct engine *engine, struct engine_info *info, const struct streamed_answer *at_1,
                      struct fail *fail)
{
    AUTO_STREAMED_ANSWER at_2 = {0};
    double one = 0, two = 0;
    const char *said = vllm_reply_mode(&at_1->whole.doc);
    if (said) {
        snprintf(info->logprobs_mode, sizeof(info->logprobs_mode), "%s", said);
        return 0;
    }
    int error = ask_one(engine, info, 2, &at_2, fail);
    if (error < 0)
        return error;
    bool told = vllm_reply_top(&at_1->whole.doc, &one) && vllm_reply_top(&at_2.whole.doc, &two);
    snprintf(info->logprobs_mode, sizeof(info->logprobs_mode), "%s", told ? logprobs_mode_of(one, two) : "unknown");
    return 0;
}

/* The route and the mode. */
int vllm_learn_route(struct engine *engine, struct engine_info *info, bool may_generate, struct fail *fail)
{
    AUTO_STREAMED_ANSWER answer = {0};
    info->has_generate = may_generate;
    int error = ask_one(engine, info, 1, &answer, fail);
    if (error == -EPROTO && may_generate) { /* no such route */
        streamed_answer_finish(&answer);
        answer = (struct streamed_answer){0};
        info->has_generate = false;
        error = ask_one(engine, info, 1, &answer, fail);
    }
    return error < 0 ? error : learn_mode(engine, info, &answer, fail);
}

/* The template's own text, where the server shows it; else its digest is of what it renders. */
static int learn_template(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    AUTO_JSON json_t *tokenizer = NULL;
    int error = http_api_get(engine, "/tokenizer_info", &tokenizer, fail);
    if (error < 0)
        return error == -ENOTSUP ? 0 : error;
    const json_t *template = json_object_get(tokenizer, "chat_template");
    if (json_is_string(template) &&
        !digest_of(slice_of(json_string_value(template), json_string_length(template)), info->template_digest))
        return fail_memory(fail);
    return 0;
}

/* -ENOTSUP: there are none. */
static int get_metrics(struct engine *engine, char **ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct call call = {.http = engine->http,
                        .line = engine_connection_http(engine),
                        .base = engine->url,
                        .path = "/metrics",
                        .timeout_ms = METADATA_TIMEOUT_MS};
    int error = call_text(&call, &text, fail);
    if (error < 0)
        return error == -EPROTO ? fail_set(fail, -ENOTSUP, "no /metrics") : error;
    *ret = buffer_take_str(&text);
    return *ret ? 0 : fail_memory(fail);
}

static int get_version(struct engine *engine, char ret[32], struct fail *fail)
{
    AUTO_JSON json_t *answer = NULL;
    int error = http_api_get(engine, "/version", &answer, fail);
    if (error < 0)
        return error;
    const char *version = json_string_value(json_object_get(answer, "version"));
    if (!version)
        return fail_set(fail, -ENOTSUP, "/version says no version");
    snprintf(ret, 32, "%.31s", version);
    return 0;
}

/* Its release, and when its process was started, where /metrics says that: those are long. */
static int ask_start(struct engine *engine, struct engine_start *ret, struct fail *fail)
{
    AUTO_FREE char *lines = NULL;
    struct metric start;
    char version[32] = "";
    int error = get_version(engine, version, fail);
    if (error == 0)
        error = get_metrics(engine, &lines, fail);
    if (error < 0 && (error != -ENOTSUP || !version[0]))
        return error;
    const bool has_start = lines && metrics_find(lines, "process_start_time_seconds", &start);
    snprintf(ret->text, sizeof(ret->text), "%s %.17g", version, has_start ? start.most : 0);
    ret->is_told = has_start;
    ret->asked_ms = loop_now_ms();
    return 0;
}

static int vllm_identify(struct engine *engine, struct engine_mark *ret, struct fail *fail)
{
    struct engine_start start = engine->start;
    int error = loop_now_ms() - start.asked_ms < START_EVERY_MS ? 0 : ask_start(engine, &start, fail);
    if (error < 0)
        return error;
    engine->start = start;
    ret->has_start = start.is_told;
    return mark_of_served(engine, start.text, ret, fail);
}

static int vllm_describe(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    char version[32];
    int error = get_version(engine, version, fail);
    if (error < 0)
        return error;
    error = http_api_model(engine, ret, ret->model_digest, fail);
    if (error == 0 && ret->context_tokens == 0)
        error = fail_set(fail, -ENOTSUP, "/v1/models has no max_model_len");
    if (error == 0)
        error = learn_template(engine, ret, fail);
    if (error == 0)
        error = special_escape_learn(engine, ret, fail);
    if (error == 0)
        error = vllm_learn_route(engine, ret, !ret->drops_blanks, fail);
    snprintf(ret->note, sizeof(ret->note), "%s, %s", version, ret->has_generate ? route_generate : route_complete);
    return error;
}

/* ---- sampling ---------------------------------------------------------------------------- */

static int read_answer(const struct engine *engine, const struct asking *asking, struct streamed_answer *answer,
                       struct generation *ret, struct fail *fail)
{
    return (engine->info.has_generate ? vllm_reply_generate : vllm_reply_complete)(
        &answer->whole.doc, streamed_answer_tokens(answer), asking->prompt, asking->max_tokens, ret, fail);
}

static int sample(struct engine *engine, const struct asking *asking, struct generation *ret, struct fail *fail)
{
    AUTO_STREAMED_ANSWER answer = {0};
    struct fail unread;
    int error = ask(engine, &engine->info, asking, &answer, fail);
    if (error < 0 && answer.whole.text.len > 0 && read_answer(engine, asking, &answer, ret, &unread) < 0)
        generation_finish(ret);
    if (error < 0)
        return error;
    error = read_answer(engine, asking, &answer, ret, fail);
    if (error < 0)
        generation_finish(ret);
    return error < 0 ? error : sampled_check_turn(engine, ret, fail);
}

int vllm_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                  uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail)
{
    const struct asking asking = {
        .prompt = prompt, .sampling = sampling, .max_tokens = max_tokens, .seed_offset = seed_offset};
    return sample(engine, &asking, ret, fail);
}

int vllm_stream(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                uint64_t max_tokens, uint64_t seed_offset, struct teller *teller, struct generation *ret,
                struct fail *fail)
{
    const int error = engine_learn_tokenizer(engine, fail);
    struct engine_info *info = &engine->info;
    const bool is_heard = teller->listener, has_text = !info->has_generate || engine->tokenizer;
    const struct asking asking = {.prompt = prompt,
                                  .sampling = sampling,
                                  .max_tokens = max_tokens,
                                  .seed_offset = seed_offset,
                                  .teller = !info->refuses_streams && (has_text || !is_heard) ? teller : NULL};
    if (error < 0)
        return error;
    struct fail why = {0};
    const size_t told = teller->told.len;
    const int code = sample(engine, &asking, ret, &why);
    if (code != -EINVAL || !asking.teller || !is_heard || ret->sampled.count > 0 || teller->told.len > told)
        return code < 0 ? fail_set(fail, code, "%s", why.text) : 0;
    const int whole = vllm_generate(engine, prompt, sampling, max_tokens, seed_offset, ret, fail);
    info->refuses_streams = whole == 0;
    return whole;
}

/* ---- given tokens ------------------------------------------------------------------------ */

/* On either route, by prompt_logprobs: a name of each id and what it was worth. */
int vllm_score(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *ret,
               struct fail *fail)
{
    const struct task_sampling sampling = {.temperature = 1, .top_p = 1, .seed = -1};
    struct asking asking = {
        .prompt = ids, .sampling = &sampling, .max_tokens = 1, .has_prompt_logprobs = true, .prompt_tops = ret->top_k};
    AUTO_STREAMED_ANSWER answer = {0};
    int error = ask(engine, &engine->info, &asking, &answer, fail);
    return error < 0 ? error : vllm_reply_scores(&answer.whole.doc, ids, from, ret, fail);
}

static int vllm_count_calls(struct engine *engine, uint64_t *ret, struct fail *fail)
{
    AUTO_FREE char *lines = NULL;
    int error = get_metrics(engine, &lines, fail);
    if (error < 0)
        return error;
    struct metric running, waiting;
    if (!metrics_find(lines, "vllm:num_requests_running", &running) ||
        !metrics_find(lines, "vllm:num_requests_waiting", &waiting))
        return fail_set(fail, -ENOTSUP, "/metrics does not tell it");
    const double sum = running.sum + waiting.sum;
    *ret = sum > 0 && sum < 1e9 ? (uint64_t)sum : 0;
    return 0;
}

const struct dialect dialect_vllm = {
    .name = "vllm",
    .doc = "vLLM's server",
    .describe = vllm_describe,
    .identify = vllm_identify,
    .apply_template = special_escape_apply_template,
    .render = special_escape_render,
    .tokenize = special_escape_tokenize,
    .detokenize = special_escape_detokenize,
    .say = special_escape_say,
    .generate = vllm_generate,
    .stream = vllm_stream,
    .score = vllm_score,
    .scores_at_once = true,
    .count_calls = vllm_count_calls,
};
