/* moving.c - a dialogue goes on on another engine: the same ids, to a server that reads them alike. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/conversation/dialogue.h"
#include "workers/engines/moving.h"
#include "workers/engines/identity.h"

enum { MOVE_ASK_MS = 5000 }; /* an engine that does not say within it what it serves is not gone to */

/*
 * Whether the trace may go on there: id for id (the same model, template, tokenizer and kind of numbers), and
 * under a version that the task lets its next turn have.
 */
static bool serves_alike(const struct dialogue *dialogue, struct engine *to)
{
    const struct record *record = dialogue->run->record;
    const struct engine_facts *facts = &to->facts;
    if (to->policy.is_paused)
        return false;
    fiber_push_deadline(loop_now_ms() + MOVE_ASK_MS);
    const int error = engine_act(to, NULL, NULL, NULL);
    fiber_pop_deadline();
    return error == 0 && strcmp(facts->identity, dialogue->identity) == 0 &&
           strcmp(facts->logprobs_mode, record->logprobs_mode) == 0 &&
           facts->context_tokens >= dialogue->context_tokens &&
           age_lets(&dialogue->run->age, dialogue->run->task, engine_policy_number(to));
}

void dialogue_move(struct dialogue *dialogue)
{
    struct agent_run *run = dialogue->run;
    struct engine *to = run->move ? take_ptr(&run->move->to) : NULL;
    if (!to)
        return;
    if (to != run->engine && serves_alike(dialogue, to)) {
        run->engine = to;
        engine_stay(&dialogue->stay, to, dialogue->ids.count);
    }
    run->move->at = run->engine;
    run->move->is_new = true;
}
