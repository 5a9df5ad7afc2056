#include "workers/engines/template/turn_templates.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/server/identity.h"
#include "workers/engines/template/turn_rendering.h"
#include "workers/engines/template/turn_template_learn.h"

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
        return fail_memory(fail);
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
        buffer_printf(&turn, "%.*s" TURN_TEMPLATE_USER "%.*s", SLICE_ARG(tail.before), SLICE_ARG(tail.after));
    char *taken = buffer_take_str(&turn);
    if (!taken)
        return fail_memory(fail);
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

void turn_templates_finish(struct engine *engine)
{
    while (engine->turn_templates) {
        struct turn_template *turn_template = engine->turn_templates;
        engine->turn_templates = turn_template->next;
        turn_template_finish(turn_template);
        free(turn_template);
    }
}
