#include "workers/engines/discovery.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/engines/template/turn_template_learn.h"
#include "workers/engines/identity.h"

enum { PORTRAITS_MAX = 4 };

static const struct dialect *const dialects[] = {&dialect_llama, &dialect_sglang, &dialect_vllm,
                                                &dialect_openai};

void engine_info_finish(struct engine_info *info)
{
    tokens_finish(&info->prefix);
    tokens_finish(&info->ends);
    *info = (struct engine_info){0};
}

/* ---- describing -------------------------------------------------------------------------- */

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
    const int len =
        snprintf(text, sizeof(text), "%s\n%s\n%s\n%s\n", info->model_digest,
                 info->template_digest, info->tokenizer_digest, info->sketch_digest);
    return digest_of(slice_of(text, (size_t)len), info->identity)
               ? 0
               : fail_set(fail, -ENOMEM, "out of memory");
}

static int portray_as(struct engine *engine, const struct dialect *dialect, struct portrait *ret,
                      struct fail *fail)
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
    for (size_t i = 0; i < sizeof(dialects) / sizeof(*dialects); i++) {
        int error = portray_as(engine, dialects[i], ret, fail);
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
    if (engine->dialect != portrait->dialect ||
        strcmp(engine->info.identity, portrait->info.identity) != 0)
        forget(engine);
    single_flight_reset(&engine->compared);
    engine_info_finish(&engine->info);
    engine->dialect = portrait->dialect;
    engine->info = portrait->info;
    engine->has_start = portrait->mark.has_start;
    engine->marks[engine->mark_count++ % ENGINE_MARKS_MAX] = portrait->mark;
    engine_note_proof(engine);
}

/* One whole portrait, or, where several servers of one address take turns, two in a row that agree. */
static int describe(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
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

int engine_learn(struct engine *engine, struct fail *fail)
{
    return single_flight_run(&engine->described, describe, engine, fail);
}

/* ---- turn templates ------------------------------------------------------------------------------ */

struct turn_template_learning {
    struct engine *engine;
    enum tell_role role;
};

/* Those of a role that a new one takes the place of, but for those in use. */
static void drop_turn_templates(struct engine *engine, enum tell_role role)
{
    for (struct turn_template **at = &engine->turn_templates; *at;) {
        struct turn_template *turn_template = *at;
        if (turn_template->role != role || turn_template->users > 0) {
            at = &turn_template->next;
            continue;
        }
        *at = turn_template->next;
        turn_template_finish(turn_template);
        free(turn_template);
    }
}

/* That there is no turn template is worth knowing, too. */
static int turn_template(void *arg, struct fail *fail)
{
    struct turn_template_learning *framing = arg;
    struct engine *engine = framing->engine;
    AUTO_FREE struct turn_template *learnt = calloc(1, sizeof(*learnt));
    if (!learnt)
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = turn_template_learn(engine, framing->role, learnt, fail);
    if (error < 0)
        turn_template_finish(learnt);
    if (error == -ENOTSUP)
        learnt->unfit = *fail;
    else if (error < 0)
        return fail_wrap(fail, "%s", engine->url);
    drop_turn_templates(engine, framing->role);
    learnt->role = framing->role;
    learnt->next = engine->turn_templates;
    engine->turn_templates = take_ptr(&learnt);
    return 0;
}

int engine_learn_turn_template(struct engine *engine, enum tell_role role, const struct turn_template **ret,
                       struct fail *fail)
{
    struct turn_template_learning framing = {engine, role};
    int error = engine_learn_once(engine, &engine->learning_turns[role], turn_template, &framing, fail);
    if (error < 0)
        return error;
    struct turn_template *newest = engine->turn_templates;
    while (newest->role != role)
        newest = newest->next;
    newest->users++;
    *ret = newest;
    return 0;
}

void engine_leave_turn_template(struct engine *engine, const struct turn_template *turn_template)
{
    struct turn_template *at = engine->turn_templates;
    while (at && at != turn_template)
        at = at->next;
    if (at)
        at->users--;
}

static int show_tool_turn(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    AUTO_BUFFER text = {0}, turn = {0};
    struct turn_template_tail tail;
    int error = turn_template_render(engine, TELL_TOOL, 1, TURN_TEMPLATE_REPLY, TURN_TEMPLATE_USER, &text, fail);
    if (error < 0 && error != -ENOTSUP)
        return error;
    if (error == 0 && turn_template_tail_find(buffer_peek(&text), &tail))
        buffer_printf(&turn, "%.*s" TURN_TEMPLATE_USER "%.*s", SLICE_ARG(tail.before),
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
    int error = engine_learn_once(engine, &engine->shown, show_tool_turn, engine, fail);
    *ret = error == 0 ? engine->tool_turn : "";
    return error;
}
