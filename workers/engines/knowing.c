#include "workers/engines/knowing.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"
#include "workers/engines/framing.h"
#include "workers/engines/tokenizer_digest.h"

static const struct dialect *const dialects[] = {&dialect_llama, &dialect_sglang, &dialect_vllm,
                                                &dialect_openai};

void engine_facts_finish(struct engine_facts *facts)
{
    tokens_finish(&facts->prefix);
    tokens_finish(&facts->ends);
    *facts = (struct engine_facts){0};
}

static void take_facts(struct engine *engine, const struct dialect *dialect,
                       struct engine_facts *facts)
{
    if (strcmp(facts->model_digest, engine->facts.model_digest) != 0) {
        once_reset(&engine->shown);
        for (size_t role = 0; role < TELL_ROLES; role++)
            once_reset(&engine->framed[role]);
    }
    engine_facts_finish(&engine->facts);
    engine->dialect = dialect;
    engine->facts = *facts;
    engine->looked_ms = clock_ms();
}

/* Model, template and tokenizer: who has all three the same is the same. */
static int sum_up(struct engine_facts *facts, struct fail *fail)
{
    char text[3 * DIGEST_SIZE + 3];
    const int len = snprintf(text, sizeof(text), "%s\n%s\n%s\n", facts->model_digest,
                             facts->template_digest, facts->tokenizer_digest);
    return digest_of(slice_of(text, (size_t)len), facts->identity)
               ? 0
               : fail_set(fail, -ENOMEM, "out of memory");
}

static int describe(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    for (size_t i = 0; i < sizeof(dialects) / sizeof(*dialects); i++) {
        struct engine_facts facts = {0};
        int error = dialects[i]->describe(engine, &facts, fail);
        if (error == 0) {
            take_facts(engine, dialects[i], &facts); /* which the tokenizer may need */
            error = tokenizer_digest_learn(engine, dialects[i], engine->facts.tokenizer_digest, fail);
            return error < 0 ? error : sum_up(&engine->facts, fail);
        }
        engine_facts_finish(&facts);
        if (error != -ENOTSUP)
            return error;
    }
    fail_wrap(fail, "%s speaks no dialect that is known here", engine->url);
    return -ENOTSUP;
}

int engine_learn(struct engine *engine, struct fail *fail)
{
    return once_run(&engine->described, describe, engine, fail);
}

int engine_confirm(struct engine *engine, struct fail *fail)
{
    char digest[80] = "";
    bool is_known = engine->described.state == ONCE_DONE;
    if (is_known && clock_ms() - engine->looked_ms >= LOOK_EVERY_MS) {
        engine->looked_ms = clock_ms(); /* others need not look meanwhile */
        fiber_push_deadline(clock_ms() + LOOK_WAIT_MS);
        int error = engine->dialect->identify(engine, digest, NULL);
        fiber_pop_deadline();
        if (error == -ETIMEDOUT)
            engine->looked_ms += LOOK_REST_MS;
        if (error == 0 && strcmp(digest, engine->facts.model_digest) != 0)
            engine_doubt(engine);
    }
    return engine_learn(engine, fail);
}

struct framing {
    struct engine *engine;
    enum tell_role role;
};

/* That there is no frame is worth knowing, too. */
static int frame(void *arg, struct fail *fail)
{
    struct framing *framing = arg;
    struct engine *engine = framing->engine;
    AUTO_FREE struct frame *learnt = calloc(1, sizeof(*learnt));
    if (!learnt)
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = framing_learn(engine, framing->role, learnt, fail);
    if (error < 0)
        frame_finish(learnt);
    if (error == -ENOTSUP)
        learnt->unfit = *fail;
    else if (error < 0)
        return fail_wrap(fail, "%s", engine->url);
    learnt->role = framing->role;
    learnt->next = engine->frames;
    engine->frames = take_ptr(&learnt);
    return 0;
}

int engine_learn_frame(struct engine *engine, enum tell_role role, const struct frame **ret,
                       struct fail *fail)
{
    struct framing framing = {engine, role};
    int error = once_run(&engine->framed[role], frame, &framing, fail);
    if (error < 0)
        return error;
    *ret = engine->frames;
    while ((*ret)->role != role)
        *ret = (*ret)->next;
    return 0;
}

static int show_tool_turn(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    AUTO_BUFFER text = {0}, turn = {0};
    struct frame_tail tail;
    int error = framing_render(engine, TELL_TOOL, 1, FRAME_REPLY, FRAME_USER, &text, fail);
    if (error < 0 && error != -ENOTSUP)
        return error;
    if (error == 0 && frame_tail_find(buffer_peek(&text), &tail))
        buffer_printf(&turn, "%.*s" FRAME_USER "%.*s", SLICE_ARG(tail.before),
                      SLICE_ARG(tail.after));
    char *taken = buffer_take_str(&turn);
    if (!taken)
        return fail_set(fail, -ENOMEM, "out of memory");
    free(engine->tool_turn);
    engine->tool_turn = taken;
    return 0;
}

int engine_learn_tool_turn(struct engine *engine, const char **ret, struct fail *fail)
{
    int error = once_run(&engine->shown, show_tool_turn, engine, fail);
    *ret = error == 0 ? engine->tool_turn : "";
    return error;
}

void engine_doubt(struct engine *engine)
{
    once_reset(&engine->described);
    once_reset(&engine->compared);
}
