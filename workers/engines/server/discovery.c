#include "workers/engines/server/discovery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/digest/digest.h"

enum { PORTRAITS_MAX = 4 };

struct portrait {
    const struct dialect *dialect;
    struct engine_info info;
    struct engine_mark mark; /* that it gave last */
    bool is_whole;           /* and first: it was one server all the time */
};

/* Model, template and tokenizer: who has all of them the same is the same. */
static int sum_up(struct engine_info *info, struct fail *fail)
{
    char text[4 * DIGEST_SIZE + 4];
    const int len = snprintf(text, sizeof(text), "%s\n%s\n%s\n%s\n", info->model_digest, info->template_digest,
                             info->tokenizer_digest, info->sketch_digest);
    return digest_of(slice_of(text, (size_t)len), info->identity) ? 0 : fail_memory(fail);
}

static int portray_as(struct engine *engine, const struct dialect *dialect, struct portrait *ret, struct fail *fail)
{
    struct engine_mark before = {0};
    engine_info_finish(&ret->info);
    *ret = (struct portrait){.dialect = dialect};
    engine->start.asked_ms = 0;
    engine->sketch = 0;
    int error = dialect->identify(engine, &before, fail);
    if (error == 0)
        error = dialect->describe(engine, &ret->info, fail);
    if (error == 0)
        error = sum_up(&ret->info, fail);
    engine->start.asked_ms = 0;
    if (error == 0)
        error = dialect->identify(engine, &ret->mark, fail);
    ret->is_whole = error == 0 && strcmp(before.text, ret->mark.text) == 0;
    return error;
}

static int portray(struct engine *engine, struct portrait *ret, struct fail *fail)
{
    for (size_t i = 0; engine->dialects[i]; i++) {
        struct fail why = {0};
        int error = portray_as(engine, engine->dialects[i], ret, &why);
        if (why.text[0]) /* the last that had something to say */
            fail_set(fail, error, "%s", why.text);
        if (error != -ENOTSUP)
            return error;
    }
    fail_wrap(fail, "%s speaks no dialect that is known here", engine->url);
    return -ENOTSUP;
}

bool engine_has_mark(const struct engine *engine, const struct engine_mark *mark)
{
    for (size_t i = 0; i < engine->mark_count && i < ENGINE_MARKS_MAX; i++)
        if (strcmp(engine->marks[i].text, mark->text) == 0)
            return true;
    return false;
}

/* Nothing that was learnt of the one before is of this one. */
static void forget(struct engine *engine)
{
    engine->number++;
    engine->mark_count = 0;
    single_flight_reset(&engine->shown);
    for (size_t role = 0; role < TELL_ROLES; role++)
        single_flight_reset(&engine->learning_turns[role]);
}

static void take_portrait(struct engine *engine, struct portrait *portrait)
{
    if (engine->dialect != portrait->dialect || strcmp(engine->info.identity, portrait->info.identity) != 0)
        forget(engine);
    single_flight_reset(&engine->compared);
    engine_info_finish(&engine->info);
    engine->dialect = portrait->dialect;
    engine->info = portrait->info;
    engine->has_start = portrait->mark.has_start;
    engine->marks[engine->mark_count++ % ENGINE_MARKS_MAX] = portrait->mark;
}

int engine_discover(struct engine *engine, struct fail *fail)
{
    struct portrait portrait = {0};
    char last[sizeof(portrait.info.identity)] = "";
    for (int i = 0; i < PORTRAITS_MAX; i++) {
        int error = portray(engine, &portrait, fail);
        if (error == 0 && (portrait.is_whole || strcmp(portrait.info.identity, last) == 0)) {
            take_portrait(engine, &portrait);
            return 0;
        }
        memcpy(last, portrait.info.identity, sizeof(last));
        engine_info_finish(&portrait.info);
        if (error < 0)
            return error;
    }
    return fail_set(fail, -EAGAIN, "%s: who answers there changes from call to call", engine->url);
}
