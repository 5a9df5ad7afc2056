/*
 * generate.c - the dialect of the server in verl's trainers: POST /generate alone, ids in and ids out. Forms read in
 * the sources of verl's asynchronous vLLM server as ProRL's trainers have it (vllm_async_server.py).
 *
 * - Asked is {"prompt_ids": [...]} and vLLM's SamplingParams, the answer {"response_ids": [...], "logprobs": [...]}.
 *   Nothing else is offered: no model, no context, no text, no version, no reason for a turn's end.
 * - So tokenizer, chat template and context are those of a directory of the operator's (model_dir.h), and are what such
 *   an engine is known by. Nothing is asked to prove who is there.
 * - What it fails at, a prompt that is too long included, is answered by 500 without a sentence: what does not fit
 *   is not sent.
 * - Of which distribution a log-probability is, is measured on the likeliest token (top_k 1): a server that tells what
 *   is left after top_k says 0 of it, and is asked again without.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "common/digest/digest.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/dialects/dialects.h"
#include "workers/engines/dialects/generate/generate_reply.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/sampled_check.h"
#include "workers/engines/models/model_dir.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/bridge.h"

enum { ANSWER_TOKEN_BYTES = 64 };

static const double MODE_EPSILON = 1e-6; /* what is no more than this below 0 is 0 */

static const struct model_dir *model_of(const struct engine *engine)
{
    return model_dirs_find(engine->model_dirs, engine->url);
}

/* ---- requests ------------------------------------------------------------------------------- */

struct asking {
    const struct tokens *prompt;
    const struct task_sampling *sampling;
    uint64_t max_tokens, seed_offset;
};

static void write_request(const struct asking *asking, const struct tokens *ends, struct buffer *ret)
{
    const struct task_sampling *sampling = asking->sampling;
    buffer_printf(ret,
                  "{\"max_tokens\":%llu,\"temperature\":%.17g,\"top_p\":%.17g,\"min_p\":%.17g,\"top_k\":%lld,"
                  "\"n\":1,\"presence_penalty\":0,\"frequency_penalty\":0,\"repetition_penalty\":1,\"min_tokens\":0,"
                  "\"ignore_eos\":false,\"stop_token_ids\":",
                  (unsigned long long)asking->max_tokens, sampling->temperature, sampling->top_p, sampling->min_p,
                  sampling->top_k ? (long long)sampling->top_k : -1);
    tokens_write(ends, ret);
    if (sampling->seed >= 0)
        buffer_printf(ret, ",\"seed\":%llu",
                      (unsigned long long)(((uint64_t)sampling->seed + asking->seed_offset) & INT32_MAX));
    buffer_append_str(ret, ",\"prompt_ids\":");
    tokens_write(asking->prompt, ret);
    buffer_append_str(ret, "}");
}

static int ask(struct engine *engine, const struct tokens *ends, const struct asking *asking, struct generation *ret,
               struct fail *fail)
{
    AUTO_BUFFER body = {0};
    AUTO_CALL_ANSWER answer = {0};
    write_request(asking, ends, &body);
    AUTO_FREE char *text = buffer_take_str(&body);
    const struct http_api_call call = {
        .path = "/generate", .text = text, .tokens = asking->max_tokens, .token_bytes = ANSWER_TOKEN_BYTES};
    int error = http_api_sample(engine, &call, &answer, fail);
    return error < 0 ? error : generate_reply_read(&answer.doc, asking->max_tokens, ret, fail);
}

/* ---- what kind of server it is -------------------------------------------------------------- */

/* Such a server fails at an empty request; any other has no such route, and is none of this dialect. */
static int name_the_cure(struct engine *engine, struct fail *fail)
{
    AUTO_JSON json_t *body = json_object(), *answer = NULL;
    struct fail why = {0};
    int error = http_api_post(engine, "/generate", body, &answer, &why);
    if (error == -EPROTO) /* so, or it wants credentials */
        return -ENOTSUP;
    return fail_set(
        fail, -ENOTSUP,
        "%s has POST /generate: one that offers this alone, as verl's, wants --model-dir DIR of the worker, "
        "with the model's tokenizer and chat template",
        engine->url);
}

static int generate_identify(struct engine *engine, struct engine_mark *ret, struct fail *fail)
{
    const struct model_dir *model = model_of(engine);
    AUTO_BUFFER text = {0};
    if (!model)
        return name_the_cure(engine, fail);
    buffer_printf(&text, "%s %s %s %llu", model->template_digest, model->tokenizer_digest, model->model_digest,
                  (unsigned long long)model->context);
    return !text.failed && digest_of(buffer_peek(&text), ret->text) ? 0 : fail_memory(fail);
}

static int learn_plain(const struct model_dir *model, struct engine_info *info, struct fail *fail)
{
    struct tokens ids = {0};
    int error = model_dir_encode(model, slice_from_str("x"), false, &ids, fail);
    if (error == 0 && ids.count == 0)
        error = fail_set(fail, -EINVAL, "the tokenizer of %s has no token for \"x\"", model->path);
    if (error == 0)
        info->plain_id = ids.ids[ids.count - 1];
    tokens_finish(&ids);
    return error;
}

/* The special token that the template writes behind a reply: read as such from its name alone. */
static int find_end(const struct model_dir *model, struct slice behind, struct tokens *ends, struct fail *fail)
{
    struct tokens as_special = {0}, as_text = {0};
    int error = model_dir_encode(model, behind, true, &as_special, fail);
    if (error == 0)
        error = model_dir_encode(model, behind, false, &as_text, fail);
    if (error == 0 && as_special.count > 0 && as_text.count > 0 && as_special.ids[0] != as_text.ids[0] &&
        !tokens_have(ends, as_special.ids[0]) && !tokens_append(ends, as_special.ids, 1))
        error = fail_memory(fail);
    tokens_finish(&as_special);
    tokens_finish(&as_text);
    return error;
}

static int learn_ends(const struct model_dir *model, struct engine_info *info, struct fail *fail)
{
    static const char reply[] = TURN_TEMPLATE_REPLY;
    const struct task_message messages[] = {{(char *)"user", (char *)TURN_TEMPLATE_USER},
                                            {(char *)"assistant", (char *)reply},
                                            {(char *)"user", (char *)TURN_TEMPLATE_USER}};
    AUTO_BUFFER text = {0};
    int error = model_dir_render(model, messages, 3, &text, fail);
    const uint8_t *at = error == 0 ? memmem(text.data, text.len, reply, sizeof(reply) - 1) : NULL;
    if (error == 0 && !tokens_append(&info->ends, model->ends.ids, model->ends.count) && model->ends.count)
        error = fail_memory(fail);
    if (error < 0 || !at)
        return error;
    const uint8_t *behind = at + sizeof(reply) - 1;
    return find_end(model, slice_of(behind, text.len - (size_t)(behind - text.data)), &info->ends, fail);
}

static int ask_one(struct engine *engine, const struct engine_info *info, double temperature, uint64_t top_k,
                   double *ret, struct fail *fail)
{
    uint32_t ids[] = {info->plain_id, info->plain_id, info->plain_id};
    const struct tokens prompt = {.ids = ids, .count = 3};
    const struct task_sampling sampling = {.temperature = temperature, .top_p = 1, .top_k = top_k, .seed = 1};
    const struct asking asking = {.prompt = &prompt, .sampling = &sampling, .max_tokens = 1};
    struct generation got = {0};
    int error = ask(engine, &info->ends, &asking, &got, fail);
    *ret = error == 0 ? (double)got.logprobs[0] : NAN;
    generation_finish(&got);
    return error;
}

static int learn_mode(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    double one = NAN, two = NAN, any = 0;
    int error = ask_one(engine, info, 1, 1, &one, fail);
    if (error == 0)
        error = ask_one(engine, info, 2, 1, &two, fail);
    const bool is_filtered = error == 0 && one > -MODE_EPSILON && two > -MODE_EPSILON;
    if (is_filtered)
        error = ask_one(engine, info, 1, 0, &any, fail);
    if (error == 0)
        snprintf(info->logprobs_mode, sizeof(info->logprobs_mode), "%s",
                 is_filtered && any < -1e-2 ? "processed" : logprobs_mode_of(one, two));
    return error;
}

static int generate_describe(struct engine *engine, struct engine_info *ret, struct fail *fail)
{
    const struct model_dir *model = model_of(engine);
    struct fail why = {0};
    if (!model)
        return -ENOTSUP;
    ret->context_tokens = model->context;
    ret->vocabulary = tokenizer_id_end(model->tokenizer);
    memcpy(ret->template_digest, model->template_digest, sizeof(ret->template_digest));
    memcpy(ret->tokenizer_digest, model->tokenizer_digest, sizeof(ret->tokenizer_digest));
    memcpy(ret->model_digest, model->model_digest, sizeof(ret->model_digest));
    snprintf(ret->note, sizeof(ret->note), "/generate, with the tokenizer and template of %.200s", model->path);
    int error = learn_plain(model, ret, fail);
    if (error == 0)
        error = learn_ends(model, ret, fail);
    if (error < 0)
        return error;
    error = learn_mode(engine, ret, &why);
    if (error == -EPROTO && strstr(why.text, "no such route"))
        return -ENOTSUP;
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}

/* ---- text and ids --------------------------------------------------------------------------- */

static int generate_apply_template(struct engine *engine, const struct task_message *messages, size_t count,
                                   struct buffer *ret, struct fail *fail)
{
    return model_dir_render(model_of(engine), messages, count, ret, fail);
}

static int generate_tokenize(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                             struct fail *fail)
{
    return model_dir_encode(model_of(engine), text, mode == TOKENIZE_SPECIALS, ret, fail);
}

static int generate_say(struct engine *engine, const struct tokens *ids, size_t count, struct buffer *ret,
                        struct fail *fail)
{
    return model_dir_say(model_of(engine), ids, count, ret, fail);
}

static int generate_detokenize(struct engine *engine, uint32_t id, struct buffer *ret, struct fail *fail)
{
    const struct tokens one = {.ids = &id, .count = 1};
    return generate_say(engine, &one, 1, ret, fail);
}

/* ---- sampling ------------------------------------------------------------------------------- */

static int take_text(struct engine *engine, struct generation *generation, struct fail *fail)
{
    AUTO_BUFFER bytes = {0}, text = {0};
    const size_t count = generation->sampled.count - (strcmp(generation->finish, "stop") == 0);
    /* The end, too, must be an id. */
    int error = generate_say(engine, &generation->sampled, generation->sampled.count, &bytes, fail);
    if (error < 0)
        return error;
    buffer_clear(&bytes);
    error = generate_say(engine, &generation->sampled, count, &bytes, fail);
    utf8_append_repaired(&text, buffer_peek(&bytes));
    if (error == 0 && !(generation->text = buffer_take_str(&text)))
        error = fail_memory(fail);
    return error;
}

static int generate_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                             uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail)
{
    const struct asking asking = {prompt, sampling, max_tokens, seed_offset};
    if (prompt->count + max_tokens > engine->info.context_tokens)
        return fail_set(fail, -E2BIG, "%zu tokens and %llu to sample are not sent: the context is one of %llu",
                        prompt->count, (unsigned long long)max_tokens, (unsigned long long)engine->info.context_tokens);
    int error = ask(engine, &engine->info.ends, &asking, ret, fail);
    if (error == 0)
        error = sampled_check_end(engine, ret, fail);
    ret->prompt_tokens = (uint32_t)prompt->count;
    return error < 0 ? error : take_text(engine, ret, fail);
}

const struct dialect dialect_generate = {
    .name = "generate",
    .doc = "verl's server",
    .describe = generate_describe,
    .identify = generate_identify,
    .apply_template = generate_apply_template,
    .tokenize = generate_tokenize,
    .detokenize = generate_detokenize,
    .say = generate_say,
    .generate = generate_generate,
};
