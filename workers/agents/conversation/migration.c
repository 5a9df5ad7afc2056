/* migration.c - a conversation goes on on another engine: the same ids, to a server that reads them alike. */
#include "workers/agents/conversation/migration.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/migration.h"
#include "workers/engines/calls.h"
#include "workers/engines/server/identity.h"
#include "common/loop/loop_now.h"

enum { MIGRATE_ASK_MS = 5000 }; /* an engine that does not say within it what it serves is not gone to */

/*
 * Whether the trace may go on there: id for id (the same model, template, tokenizer and kind of numbers), and
 * under a version that the task lets its next turn have.
 */
static bool serves_alike(const struct model *model, struct engine *to)
{
    const struct record *record = model->run->record;
    const struct engine_info *info = &to->info;
    if (to->policy.is_paused)
        return false;
    fiber_push_deadline(loop_now_ms() + MIGRATE_ASK_MS);
    const int error = engine_act(to, NULL, NULL, NULL);
    fiber_pop_deadline();
    return error == 0 && strcmp(info->identity, model->identity) == 0 &&
           strcmp(info->logprobs_mode, record->logprobs_mode) == 0 && info->context_tokens >= model->context_tokens &&
           staleness_lets(&model->run->age, model->run->task, engine_policy_number(to));
}

/* What was sampled so far was the engine's that it began with. */
static bool is_settled(const struct model *model)
{
    const struct engine *from = model->run->engine;
    fiber_push_deadline(loop_now_ms() + MIGRATE_ASK_MS);
    const int error = engine_settle(model->run->engine, NULL);
    fiber_pop_deadline();
    return error == 0 && engine_serves(from, model->identity);
}

void model_migrate(struct model *model, uint64_t tokens)
{
    struct agent_run *run = model->run;
    struct engine *to = run->migration ? take_ptr(&run->migration->to) : NULL;
    if (!to)
        return;
    if (to != run->engine && is_settled(model) && serves_alike(model, to)) {
        run->engine = to;
        engine_stay(&model->stay, to, tokens);
    }
    run->migration->at = run->engine;
    run->migration->is_new = true;
}
