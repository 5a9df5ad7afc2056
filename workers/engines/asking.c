/* asking.c - what rollouts ask of an engine: each entry point is one act that may be tried again. */
#include <errno.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/engines/framing.h"
#include "workers/engines/knowing.h"
#include "workers/engines/trying.h"

struct action {
    struct engine *engine;
    const struct task_message *messages;
    size_t message_count;
    uint32_t last;
    struct slice content;
    const struct tokens *prompt;
    const struct task_sampling *sampling;
    uint64_t max_tokens, seed_offset;
    struct tokens ids;            /* of render and bridge */
    struct generation generation; /* of generate */
};

static int act_describe(void *arg, struct fail *fail)
{
    struct action *action = arg;
    return engine_confirm(action->engine, fail);
}

int engine_describe(struct engine *engine, struct engine_about *ret, struct fail *fail)
{
    struct action action = {.engine = engine};
    int error = engine_try(engine, act_describe, &action, fail);
    if (error < 0)
        return error;
    ret->context_tokens = engine->facts.context_tokens;
    memcpy(ret->template_digest, engine->facts.template_digest, sizeof(ret->template_digest));
    memcpy(ret->tokenizer_digest, engine->facts.tokenizer_digest, sizeof(ret->tokenizer_digest));
    memcpy(ret->model_digest, engine->facts.model_digest, sizeof(ret->model_digest));
    memcpy(ret->model, engine->facts.model, sizeof(ret->model));
    return 0;
}

bool engine_serves(const struct engine *engine, const char *model_digest)
{
    return strcmp(engine->facts.model_digest, model_digest) == 0;
}

static bool has_prefix(const struct tokens *ids, const struct tokens *prefix)
{
    return ids->count >= prefix->count &&
           (prefix->count == 0 ||
            memcmp(ids->ids, prefix->ids, prefix->count * sizeof(*ids->ids)) == 0);
}

static int render_text(struct engine *engine, const struct task_message *messages, size_t count,
                       struct tokens *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct tokens ids = {0};
    int error = engine->dialect->apply_template(engine, messages, count, &text, fail);
    if (error == 0)
        error =
            engine->dialect->tokenize(engine, buffer_peek(&text), TOKENIZE_SPECIALS, &ids, fail);
    const struct tokens *prefix = &engine->facts.prefix;
    if (error == 0 && !has_prefix(&ids, prefix) && !tokens_append(ret, prefix->ids, prefix->count))
        error = fail_set(fail, -ENOMEM, "out of memory");
    if (error == 0 && !tokens_append(ret, ids.ids, ids.count))
        error = fail_set(fail, -ENOMEM, "out of memory");
    tokens_finish(&ids);
    return error;
}

int engine_render_once(struct engine *engine, const struct task_message *messages, size_t count,
                       struct tokens *ret, struct fail *fail)
{
    return (engine->dialect->render ? engine->dialect->render : render_text)(engine, messages,
                                                                             count, ret, fail);
}

static int act_render(void *arg, struct fail *fail)
{
    struct action *action = arg;
    action->ids.count = 0;
    int error = engine_learn(action->engine, fail);
    return error < 0 ? error
                     : engine_render_once(action->engine, action->messages, action->message_count,
                                          &action->ids, fail);
}

static int act_bridge(void *arg, struct fail *fail)
{
    struct action *action = arg;
    struct engine *engine = action->engine;
    action->ids.count = 0;
    int error = engine_learn(engine, fail);
    if (error == 0)
        error = engine_learn_frame(engine, fail);
    return error < 0 ? error
                     : framing_bridge(engine, engine->frames, action->last, action->content,
                                      &action->ids, fail);
}

static int take_ids(struct action *action, int error, struct tokens *ret, struct fail *fail)
{
    if (error == 0 && !tokens_append(ret, action->ids.ids, action->ids.count))
        error = fail_set(fail, -ENOMEM, "out of memory");
    tokens_finish(&action->ids);
    return error;
}

int engine_render(struct engine *engine, const struct task_message *messages, size_t count,
                  struct tokens *ret, struct fail *fail)
{
    struct action action = {.engine = engine, .messages = messages, .message_count = count};
    return take_ids(&action, engine_try(engine, act_render, &action, fail), ret, fail);
}

int engine_bridge(struct engine *engine, uint32_t last, struct slice content, struct tokens *ret,
                  struct fail *fail)
{
    struct action action = {.engine = engine, .last = last, .content = content};
    return take_ids(&action, engine_try(engine, act_bridge, &action, fail), ret, fail);
}

/* The call, and again if a pause aborted it. */
static int sample(struct action *action, uint64_t max_tokens, struct fail *fail)
{
    struct engine *engine = action->engine;
    struct engine_call call;
    int64_t start_us;
    int error;
    do {
        generation_finish(&action->generation);
        error = engine_call_begin(engine, &call, fail);
        if (error < 0)
            return error;
        start_us = clock_us();
        error = engine->dialect->generate(engine, action->prompt, action->sampling, max_tokens,
                                          action->seed_offset, &action->generation, fail);
    } while (engine_call_end(engine, &call, error, &action->generation));
    action->generation.seconds = (double)(clock_us() - start_us) / 1e6;
    return error;
}

static int act_generate(void *arg, struct fail *fail)
{
    struct action *action = arg;
    struct engine *engine = action->engine;
    generation_finish(&action->generation);
    int error = engine_learn(engine, fail);
    if (error < 0)
        return error;
    uint64_t context = engine->facts.context_tokens, prompt = action->prompt->count;
    if (prompt >= context)
        return fail_set(fail, -E2BIG, "a prompt of %llu tokens leaves no room in a context of %llu",
                        (unsigned long long)prompt, (unsigned long long)context);
    uint64_t room = context - prompt;
    return sample(action, action->max_tokens < room ? action->max_tokens : room, fail);
}

int engine_generate(struct engine *engine, const struct tokens *prompt,
                    const struct task_sampling *sampling, uint64_t max_tokens, uint64_t seed_offset,
                    struct generation *ret, struct fail *fail)
{
    if (prompt->count == 0 || max_tokens == 0)
        return fail_set(fail, -EINVAL, "nothing to sample: an empty prompt, or no token asked for");
    struct action action = {.engine = engine,
                            .prompt = prompt,
                            .sampling = sampling,
                            .max_tokens = max_tokens,
                            .seed_offset = seed_offset};
    int error = engine_try(engine, act_generate, &action, fail);
    if (error < 0)
        generation_finish(&action.generation);
    *ret = action.generation;
    return error;
}

struct rescoring {
    struct engine *engine;
    struct engine_scoring *scoring;
};

/* Neighbours are asked for together: some engines tell them all in one answer. */
static int score_runs(struct engine *engine, struct engine_scoring *scoring, struct fail *fail)
{
    while (scoring->at < scoring->count) {
        size_t at = scoring->at, end = at;
        while (end < scoring->count && end > 0 && scoring->wanted[end])
            end++;
        if (end > at) {
            const struct tokens ids = {.ids = (uint32_t *)(uintptr_t)scoring->ids, .count = end};
            int error = engine->dialect->score(engine, &ids, at, scoring->logprobs + at, fail);
            if (error < 0)
                return error;
            *scoring->done += end - at;
        }
        scoring->at = end > at ? end : at + 1;
    }
    return 0;
}

static int act_score(void *arg, struct fail *fail)
{
    struct rescoring *rescoring = arg;
    struct engine *engine = rescoring->engine;
    int error = engine_learn(engine, fail);
    if (error < 0)
        return error;
    uint64_t context = engine->facts.context_tokens, count = rescoring->scoring->count;
    if (count > context)
        return fail_set(fail, -E2BIG, "%llu tokens do not fit a context of %llu",
                        (unsigned long long)count, (unsigned long long)context);
    if (!engine->dialect->score)
        return fail_set(fail, -EINVAL, "%s does not tell the log-probabilities of given tokens",
                        engine->dialect->doc);
    return score_runs(engine, rescoring->scoring, fail);
}

int engine_score(struct engine *engine, struct engine_scoring *scoring, struct fail *fail)
{
    struct rescoring rescoring = {engine, scoring};
    return engine_try(engine, act_score, &rescoring, fail);
}
