/* engines.c - the worker's engines, the table of dialects, and trying again. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "workers/engines/framing.h"
#include "workers/fiber.h"

enum { BACKOFF_FIRST_MS = 250, BACKOFF_MAX_MS = 8000 };

static const struct dialect *const dialects[] = {&dialect_llama};

struct engines {
    struct http *http;
    struct engine *first;
};

/* ---- life -------------------------------------------------------------------------------- */

struct engines *engines_create(struct http *http)
{
    struct engines *engines = calloc(1, sizeof(*engines));
    if (engines)
        engines->http = http;
    return engines;
}

void engine_facts_finish(struct engine_facts *facts)
{
    tokens_finish(&facts->prefix);
    tokens_finish(&facts->ends);
    *facts = (struct engine_facts){0};
}

static void engine_destroy(struct engine *engine)
{
    while (engine->frames) {
        struct frame *frame = engine->frames;
        engine->frames = frame->next;
        frame_finish(frame);
        free(frame);
    }
    engine_facts_finish(&engine->facts);
    free(engine->url);
    free(engine);
}

void engines_destroy(struct engines **engines)
{
    struct engines *old = take_ptr(engines);
    if (!old)
        return;
    while (old->first) {
        struct engine *engine = old->first;
        old->first = engine->next;
        engine_destroy(engine);
    }
    free(old);
}

static struct engine *engine_create(struct http *http, const char *url, size_t len)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return NULL;
    engine->http = http;
    engine->url = strndup(url, len);
    if (!engine->url)
        free(take_ptr(&engine));
    return engine;
}

struct engine *engines_get(struct engines *engines, const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    struct engine **at = &engines->first;
    while (*at && !(strlen((*at)->url) == len && memcmp((*at)->url, url, len) == 0))
        at = &(*at)->next;
    if (!*at)
        *at = engine_create(engines->http, url, len);
    return *at;
}

/* ---- trying again ------------------------------------------------------------------------ */

static bool is_transient(int code)
{
    return code == -EAGAIN || code == -EIO || code == -ECONNREFUSED || code == -ETIMEDOUT ||
           code == -EPROTO;
}

/* Half of the time for sure, the other half by chance, so that rollouts do not come back in step.
 */
static int64_t backoff_ms(int tries)
{
    int64_t ms = (int64_t)BACKOFF_FIRST_MS << tries;
    if (ms > BACKOFF_MAX_MS)
        ms = BACKOFF_MAX_MS;
    return ms / 2 + clock_us() % (ms / 2);
}

/* After a server was away it may come back as another. What it is is asked again. */
static void engine_doubt(struct engine *engine, int code)
{
    if (code != -EPROTO)
        once_reset(&engine->described);
}

/*
 * Until it succeeds, fails for good, or has failed ENGINE_TRIES times. When the fiber's time
 * runs out after failures, the failure is what is told, not the time: it was the engine's doing.
 */
static int engine_try(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg,
                      struct fail *fail)
{
    struct fail why = {0};
    for (int tries = 0;; tries++) {
        struct fail now = {0};
        int code = act(arg, &now);
        if (code == -ETIMEDOUT && fiber_is_late())
            return fail_set(fail, why.code ? why.code : code, "%s", why.code ? why.text : now.text);
        if (code == -ENOTSUP) /* it would be the same again */
            return fail_set(fail, -EPROTO, "%s", now.text);
        if (!is_transient(code))
            return code < 0 ? fail_set(fail, code, "%s", now.text) : 0;
        engine_doubt(engine, code);
        why = now;
        why.code = code == -ETIMEDOUT ? -EIO : code;
        if (tries + 1 == ENGINE_TRIES)
            return fail_set(fail, code, "%s (tried %d times)", now.text, ENGINE_TRIES);
        int slept = await_sleep(backoff_ms(tries));
        if (slept == -ETIMEDOUT)
            return fail_set(fail, why.code, "%s", why.text);
        if (slept < 0)
            return fail_set(fail, slept, "cancelled");
    }
}

/* ---- what an engine is ------------------------------------------------------------------- */

static void engine_learn(struct engine *engine, const struct dialect *dialect,
                         struct engine_facts *facts)
{
    if (strcmp(facts->template_digest, engine->facts.template_digest) != 0)
        once_reset(&engine->framed);
    engine_facts_finish(&engine->facts);
    engine->dialect = dialect;
    engine->facts = *facts;
}

static int describe(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    for (size_t i = 0; i < sizeof(dialects) / sizeof(*dialects); i++) {
        struct engine_facts facts = {0};
        int error = dialects[i]->describe(engine, &facts, fail);
        if (error == 0)
            engine_learn(engine, dialects[i], &facts);
        else
            engine_facts_finish(&facts);
        if (error != -ENOTSUP)
            return error;
    }
    return fail_set(fail, -ENOTSUP, "%s speaks no dialect that is known here", engine->url);
}

static int frame(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    AUTO_FREE struct frame *learnt = calloc(1, sizeof(*learnt));
    if (!learnt)
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = framing_learn(engine, learnt, fail);
    if (error < 0) {
        frame_finish(learnt);
        return fail_wrap(fail, "%s", engine->url);
    }
    learnt->next = engine->frames;
    engine->frames = take_ptr(&learnt);
    return 0;
}

static int ensure_described(struct engine *engine, struct fail *fail)
{
    return once_run(&engine->described, describe, engine, fail);
}

/* ---- the contract: each entry point is one act that may be tried again ------------------- */

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
    return ensure_described(action->engine, fail);
}

int engine_describe(struct engine *engine, uint64_t *context_tokens, char template_digest[80],
                    struct fail *fail)
{
    struct action action = {.engine = engine};
    int error = engine_try(engine, act_describe, &action, fail);
    if (error < 0)
        return error;
    *context_tokens = engine->facts.context_tokens;
    memcpy(template_digest, engine->facts.template_digest, sizeof(engine->facts.template_digest));
    return 0;
}

static bool has_prefix(const struct tokens *ids, const struct tokens *prefix)
{
    return ids->count >= prefix->count &&
           (prefix->count == 0 ||
            memcmp(ids->ids, prefix->ids, prefix->count * sizeof(*ids->ids)) == 0);
}

static int act_render(void *arg, struct fail *fail)
{
    struct action *action = arg;
    struct engine *engine = action->engine;
    AUTO_BUFFER text = {0};
    struct tokens ids = {0};
    action->ids.count = 0;
    int error = ensure_described(engine, fail);
    if (error == 0)
        error = engine->dialect->apply_template(engine, action->messages, action->message_count,
                                                &text, fail);
    if (error == 0)
        error =
            engine->dialect->tokenize(engine, buffer_peek(&text), TOKENIZE_SPECIALS, &ids, fail);
    const struct tokens *prefix = &engine->facts.prefix;
    if (error == 0 && !has_prefix(&ids, prefix) &&
        !tokens_append(&action->ids, prefix->ids, prefix->count))
        error = fail_set(fail, -ENOMEM, "out of memory");
    if (error == 0 && !tokens_append(&action->ids, ids.ids, ids.count))
        error = fail_set(fail, -ENOMEM, "out of memory");
    tokens_finish(&ids);
    return error;
}

static int act_bridge(void *arg, struct fail *fail)
{
    struct action *action = arg;
    struct engine *engine = action->engine;
    action->ids.count = 0;
    int error = ensure_described(engine, fail);
    if (error == 0)
        error = once_run(&engine->framed, frame, engine, fail);
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

static int act_generate(void *arg, struct fail *fail)
{
    struct action *action = arg;
    struct engine *engine = action->engine;
    generation_finish(&action->generation);
    int error = ensure_described(engine, fail);
    if (error < 0)
        return error;
    uint64_t context = engine->facts.context_tokens, prompt = action->prompt->count;
    if (prompt >= context)
        return fail_set(fail, -E2BIG, "a prompt of %llu tokens leaves no room in a context of %llu",
                        (unsigned long long)prompt, (unsigned long long)context);
    uint64_t room = context - prompt;
    int64_t start_us = clock_us();
    error = engine->dialect->generate(engine, action->prompt, action->sampling,
                                      action->max_tokens < room ? action->max_tokens : room,
                                      action->seed_offset, &action->generation, fail);
    action->generation.seconds = (double)(clock_us() - start_us) / 1e6;
    return error;
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

const char *engine_url(const struct engine *engine)
{
    return engine->url;
}

const char *engine_logprobs_mode(const struct engine *engine)
{
    return engine->dialect ? engine->dialect->logprobs_mode : "";
}
