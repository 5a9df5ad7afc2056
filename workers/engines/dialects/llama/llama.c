/*
 * llama.c - the dialect of llama.cpp's server: POST /completion with ids.
 *
 * As seen on real servers:
 * - `tokens` and the entries of completion_probabilities include the sampled end-of-turn token.
 * - a log-probability is of the softmax of the raw logits, whatever temperature, top_k, top_p,
 *   min_p or logit_bias say: mode "raw".
 * - tokens within a multi-byte character have no entry (llama_reply.h). They are asked for: the
 *   same prefix, the token forced by logit_bias, which the log-probability does not see. Where
 *   the forced token's own text is cut there is none again; then another token is forced and the
 *   wanted one found among top_logprobs. The engine computes these in another batch than when it
 *   sampled, so they can differ in the last digits.
 * - model_path and chat_template of /props, with the names of bos and eos and the vocabulary
 *   (llama_vocabulary.h), say which model it is; media_marker is another with each start.
 * - a request longer than a slot's context is refused with a type; one that fits but asks for
 *   too many tokens is cut, so we ask only for what fits.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "schemas/tokenizer_sample.h"
#include "workers/engines/dialects/dialects.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/dialects/sampled_check.h"
#include "workers/engines/dialects/llama/llama_reply.h"
#include "workers/engines/dialects/llama/llama_vocabulary.h"
#include "workers/engines/dialects/http_api.h"
#include "common/base/text.h"

enum {
    ANSWER_TOKEN_BYTES = 1 << 10, /* a token of the answer with its entry; usually 200 */
    FORCE_BIAS = 10000,           /* far above any logit */
    MARKER_MIN = 16               /* letters of chance in a media_marker */
};

/* ---- text and ids ------------------------------------------------------------------------ */

static int encode(struct engine *engine, struct slice text, enum tokenize_mode mode, bool prefix, struct tokens *ret,
                  struct fail *fail)
{
    AUTO_JSON json_t *body = json_pack("{s:s%,s:b,s:b}", "content", text.len ? (char *)text.data : "", text.len,
                                       "add_special", prefix, "parse_special", mode == TOKENIZE_SPECIALS);
    AUTO_JSON json_t *answer = NULL;
    int error = http_api_post(engine, "/tokenize", body, &answer, fail);
    return error < 0 ? error : http_api_ids(answer, ret, fail);
}

static int llama_tokenize(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                          struct fail *fail)
{
    return encode(engine, text, mode, false, ret, fail);
}

static int llama_say(struct engine *engine, const struct tokens *ids, size_t count, struct buffer *ret,
                     struct fail *fail)
{
    return http_api_say(engine, ids, count, "", (const char *const[]){"content", NULL}, ret, fail);
}

static int llama_detokenize(struct engine *engine, uint32_t id, struct buffer *ret, struct fail *fail)
{
    const struct tokens one = {.ids = &id, .count = 1};
    return llama_say(engine, &one, 1, ret, fail);
}

static int llama_apply_template(struct engine *engine, const struct task_message *messages, size_t count,
                                struct buffer *ret, struct fail *fail)
{
    AUTO_JSON json_t *list = NULL, *answer = NULL;
    int error = http_api_messages(messages, count, &list, fail);
    if (error < 0)
        return error;
    AUTO_JSON json_t *body = json_pack("{s:O}", "messages", list);
    error = http_api_post(engine, "/apply-template", body, &answer, fail);
    if (error < 0)
        return error;
    const json_t *prompt = json_object_get(answer, "prompt");
    if (!json_is_string(prompt))
        return fail_set(fail, -EPROTO, "the engine's answer to /apply-template has no prompt");
    buffer_append(ret, json_string_value(prompt), json_string_length(prompt));
    return ret->failed ? fail_memory(fail) : 0;
}

/* ---- what kind of server it is ----------------------------------------------------------- */

/* Older servers have none, or always the same; people may set one. */
static bool has_start(const json_t *props)
{
    static const char begin[] = "<__media_", end[] = "__>";
    const json_t *marker = json_object_get(props, "media_marker");
    const size_t len = json_string_length(marker), begins = sizeof(begin) - 1, ends = sizeof(end) - 1;
    const char *text = json_string_value(marker);
    return len >= begins + MARKER_MIN + ends && memcmp(text, begin, begins) == 0 &&
           memcmp(text + len - ends, end, ends) == 0;
}

/* What its props say of the model, and the vocabulary. */
static int digest_model(const json_t *props, const char *vocabulary, char ret[80], struct fail *fail)
{
    static const char *const names[] = {"model_path", "chat_template", "bos_token", "eos_token", "vocabulary"};
    AUTO_JSON json_t *all = json_copy((json_t *)props);
    if (!all || json_object_set_new(all, "vocabulary", json_string(vocabulary)) < 0)
        return fail_memory(fail);
    return digest_members(all, names, sizeof(names) / sizeof(*names), ret, fail);
}

/* The ids of the text that tokenizers are known by. */
static int sample_digest(struct engine *engine, char ret[80], struct fail *fail)
{
    struct tokens ids = {0};
    int error = llama_tokenize(engine, slice_from_str(tokenizer_sample), TOKENIZE_PLAIN, &ids, fail);
    error = tokenizer_digest_take(error, &ids, ret, fail);
    tokens_finish(&ids);
    return error;
}

/* The server's alias of it, or its file's name. */
static void name_model(const json_t *props, char ret[256])
{
    const char *alias = json_string_value(json_object_get(props, "model_alias"));
    const char *path = json_string_value(json_object_get(props, "model_path"));
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = alias && *alias ? alias : slash ? slash + 1 : path;
    snprintf(ret, 256, "%.*s", (int)text_cut(name ? name : "", 255).len, name ? name : "");
}

static int llama_identify(struct engine *engine, struct engine_mark *ret, struct fail *fail)
{
    static const char *const names[] = {"model_path", "model_alias", "chat_template", "bos_token",
                                        "eos_token",  "build_info",  "media_marker",  "sample"};
    AUTO_JSON json_t *props = NULL;
    char sample[80] = "";
    int error = http_api_get(engine, "/props", &props, fail);
    if (error == 0)
        ret->has_start = has_start(props);
    if (error == 0 && !ret->has_start)
        error = sample_digest(engine, sample, fail);
    if (error < 0)
        return error;
    if (json_object_set_new(props, "sample", json_string(sample)) < 0)
        return fail_set(fail, -ENOTSUP, "/props is not an object");
    return digest_members(props, names, sizeof(names) / sizeof(*names), ret->text, fail);
}

static int read_props(struct engine *engine, struct engine_info *ret, json_t **props, struct fail *fail)
{
    int error = http_api_get(engine, "/props", props, fail);
    if (error < 0)
        return error;
    const json_t *settings = json_object_get(*props, "default_generation_settings");
    const json_t *context = json_object_get(settings, "n_ctx");
    const json_t *template = json_object_get(*props, "chat_template");
    if (json_integer_value(context) <= 0 || !json_is_string(template))
        return fail_set(fail, -ENOTSUP, "/props has no n_ctx or no chat_template");
    ret->context_tokens = (uint64_t)json_integer_value(context);
    snprintf(ret->logprobs_mode, sizeof(ret->logprobs_mode), "raw");
    name_model(*props, ret->model);
    return digest_of(slice_of(json_string_value(template), json_string_length(template)), ret->template_digest)
               ? 0
               : fail_memory(fail);
}

/* The ids the tokenizer puts in front of a text by itself, and one plain id. */
static int read_prefix(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    struct tokens with = {0}, without = {0};
    int error = encode(engine, slice_from_str("x"), TOKENIZE_PLAIN, true, &with, fail);
    if (error == 0)
        error = encode(engine, slice_from_str("x"), TOKENIZE_PLAIN, false, &without, fail);
    if (error == 0 && without.count == 0)
        error = fail_set(fail, -EPROTO, "the engine has no token for \"x\"");
    size_t at = 0;
    while (error == 0 && at + without.count <= with.count &&
           memcmp(with.ids + at, without.ids, without.count * sizeof(*with.ids)) != 0)
        at++;
    if (error == 0 && at + without.count > with.count)
        error = fail_set(fail, -EPROTO, "the engine's add_special changes more than a prefix");
    if (error == 0 && !tokens_append(&ret->prefix, with.ids, at))
        error = fail_memory(fail);
    if (error == 0)
        ret->plain_id = without.ids[without.count - 1];
    tokens_finish(&with);
    tokens_finish(&without);
    return error;
}

static int read_end(struct engine *engine, const json_t *props, struct engine_info *ret, struct fail *fail)
{
    const char *name = json_string_value(json_object_get(props, "eos_token"));
    struct tokens ids = {0};
    int error = 0;
    if (name && *name)
        error = llama_tokenize(engine, slice_from_str(name), TOKENIZE_SPECIALS, &ids, fail);
    if (error == 0 && ids.count == 1 && !tokens_append(&ret->ends, ids.ids, 1))
        error = fail_memory(fail);
    tokens_finish(&ids);
    return error;
}

static int llama_describe(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    AUTO_JSON json_t *props = NULL;
    char vocabulary[80];
    int error = read_props(engine, ret, &props, fail);
    if (error == 0)
        error = read_prefix(engine, ret, fail);
    if (error == 0)
        error = read_end(engine, props, ret, fail);
    if (error == 0)
        error = sample_digest(engine, ret->tokenizer_digest, fail);
    if (error == 0)
        error = llama_vocabulary_read(engine, ret, vocabulary, fail);
    return error < 0 ? error : digest_model(props, vocabulary, ret->model_digest, fail);
}

/* ---- sampling ---------------------------------------------------------------------------- */

/*
 * A request with everything said that would change the distribution: the server's defaults are
 * not neutral. What the answer need not repeat (the prompt, the settings) is left out.
 */
static json_t *completion_body(uint64_t max_tokens)
{
    return json_pack("{s:I,s:b,s:i,s:b,s:b,s:b,s:f,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:i,s:b,s:i,"
                     "s:[],s:[s,s,s,s,s,s,s,s,s]}",
                     "n_predict", (json_int_t)max_tokens, "return_tokens", true, "n_probs", 1, "post_sampling_probs",
                     false, "cache_prompt", true, "stream", false, "temperature", 1.0, "top_k", 0, "top_p", 1.0,
                     "min_p", 0.0, "typical_p", 1.0, "top_n_sigma", -1.0, "repeat_penalty", 1.0, "presence_penalty",
                     0.0, "frequency_penalty", 0.0, "dry_multiplier", 0.0, "xtc_probability", 0.0, "dynatemp_range",
                     0.0, "mirostat", 0, "ignore_eos", false, "n_keep", 0, "stop", "response_fields", "content",
                     "tokens", "stop_type", "tokens_evaluated", "completion_probabilities", "probs", "timings/cache_n",
                     "timings/prompt_ms", "timings/predicted_ms");
}

/* The prompt is written into the body once, as it is: nothing else of it is as long. */
static char *write_body(const json_t *body, const struct tokens *prompt)
{
    AUTO_FREE char *rest = body ? json_dumps(body, JSON_COMPACT) : NULL;
    AUTO_BUFFER text = {0};
    buffer_append_str(&text, "{\"prompt\":");
    tokens_write(prompt, &text);
    buffer_printf(&text, ",%s", rest ? rest + 1 : "");
    return rest ? buffer_take_str(&text) : NULL;
}

/* Takes `body`, which is gone while the engine works: it is many times as large as its text. */
static int complete(struct engine *engine, const struct tokens *prompt, json_t *body, uint64_t tokens,
                    struct call_answer *ret, struct fail *fail)
{
    AUTO_FREE char *text = write_body(body, prompt);
    json_decref(body);
    const struct http_api_call call = {
        .path = "/completion", .text = text, .tokens = tokens, .token_bytes = ANSWER_TOKEN_BYTES};
    return http_api_sample(engine, &call, ret, fail);
}

struct scoring {
    struct engine *engine;
    const struct tokens *prompt;
    struct reply_tops tops; /* the likeliest that are wanted beside each */
};

/* One token after prompt + ids[0..at], `forced`; with the `top` most likely ones beside it. */
static int ask_forced(const struct scoring *scoring, const struct tokens *ids, size_t at, uint32_t forced, uint64_t top,
                      struct call_answer *ret, struct fail *fail)
{
    struct tokens prefix = {0};
    if (!tokens_append(&prefix, scoring->prompt->ids, scoring->prompt->count) ||
        !tokens_append(&prefix, ids->ids, at)) {
        tokens_finish(&prefix);
        return fail_memory(fail);
    }
    json_t *body = completion_body(1);
    json_object_set_new(body, "n_probs", json_integer((json_int_t)top));
    json_object_set_new(body, "temperature", json_real(0.0));
    json_object_set_new(body, "logit_bias", json_pack("[[I,i]]", (json_int_t)forced, (int)FORCE_BIAS));
    int error = complete(scoring->engine, &prefix, body, top, ret, fail);
    tokens_finish(&prefix);
    return error;
}

static uint64_t most_of(uint64_t one, uint64_t other) { return one > other ? one : other; }

static int score(void *arg, const struct tokens *ids, size_t at, struct llama_score *ret, struct fail *fail)
{
    struct scoring *scoring = arg;
    uint32_t wanted = ids->ids[at];
    const struct {
        uint32_t forced;
        uint64_t top;
    } questions[] = {{wanted, 1},
                     {scoring->engine->info.plain_id, 64},
                     {scoring->engine->info.plain_id, 4096},
                     {scoring->engine->info.plain_id, 1 << 16},
                     {scoring->engine->info.plain_id, 1 << 20}};
    for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
        AUTO_CALL_ANSWER reply = {0};
        const uint64_t top = most_of(questions[i].top, scoring->tops.wanted);
        int error = ask_forced(scoring, ids, at, questions[i].forced, top, &reply, fail);
        if (error < 0)
            return error;
        if (llama_reply_find(&reply.doc, wanted, ret) == 0)
            return llama_reply_tops(&reply.doc, at, &scoring->tops, fail);
    }
    return fail_set(fail, -EPROTO, "the engine does not tell the log-probability of token %u", wanted);
}

static json_t *sampling_body(const struct task_sampling *sampling, uint64_t max_tokens, uint64_t seed_offset)
{
    json_t *body = completion_body(max_tokens);
    json_int_t seed = sampling->seed < 0 ? -1 : (json_int_t)(((uint64_t)sampling->seed + seed_offset) & INT32_MAX);
    json_object_set_new(body, "temperature", json_real(sampling->temperature));
    json_object_set_new(body, "top_p", json_real(sampling->top_p));
    json_object_set_new(body, "min_p", json_real(sampling->min_p));
    json_object_set_new(body, "top_k", json_integer((json_int_t)sampling->top_k));
    json_object_set_new(body, "seed", json_integer(seed));
    return body;
}

static int llama_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                          uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail)
{
    json_t *body = sampling_body(sampling, max_tokens, seed_offset);
    AUTO_CALL_ANSWER reply = {0};
    int error = complete(engine, prompt, body, max_tokens, &reply, fail);
    if (error < 0)
        return error;
    struct scoring scoring = {.engine = engine, .prompt = prompt};
    struct llama_scorer scorer = {&scoring, score};
    error = llama_reply_read(&reply.doc, prompt->count, max_tokens, &scorer, ret, fail);
    return error < 0 ? error : sampled_check_end(engine, ret, fail);
}

/* ---- given tokens ------------------------------------------------------------------------ */

static int llama_score(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *ret,
                       struct fail *fail)
{
    const struct tokens none = {.count = 0};
    for (size_t at = from; at < ids->count; at++) {
        struct llama_score one;
        struct scoring scoring = {.engine = engine, .prompt = &none, .tops = reply_tops_of(ret, at - from)};
        int error = score(&scoring, ids, at, &one, fail);
        if (error < 0)
            return error;
        ret->logprobs[at - from] = one.logprob;
    }
    return 0;
}

static int llama_count_calls(struct engine *engine, uint64_t *ret, struct fail *fail)
{
    AUTO_JSON json_t *slots = NULL;
    const json_t *slot;
    size_t i;
    int error = http_api_get(engine, "/slots", &slots, fail);
    if (error < 0)
        return error;
    *ret = 0;
    json_array_foreach(slots, i, slot) *ret += json_is_true(json_object_get(slot, "is_processing"));
    return json_is_array(slots) ? 0 : fail_set(fail, -ENOTSUP, "/slots is not a list");
}

const struct dialect dialect_llama = {
    .name = "llama",
    .doc = "llama.cpp's server",
    .describe = llama_describe,
    .identify = llama_identify,
    .apply_template = llama_apply_template,
    .tokenize = llama_tokenize,
    .detokenize = llama_detokenize,
    .say = llama_say,
    .generate = llama_generate,
    .score = llama_score,
    .count_calls = llama_count_calls,
};
