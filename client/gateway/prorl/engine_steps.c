#include "client/gateway/prorl/engine_steps.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAUSE_MS = 600000 /* of engines that were cleared: an update of weights takes less */ };

static void end(struct http_call *call)
{
    struct engine_steps *steps = call->state;
    free(steps->of);
    free(steps);
}

struct engine_steps *engine_steps_begin(struct http_call *call, void (*done)(struct http_call *call), void *user)
{
    struct engine_steps *steps = calloc(1, sizeof(*steps));
    if (!steps) {
        http_call_refuse(call, 503, "queue-full", "", "out of memory");
        return NULL;
    }
    *steps = (struct engine_steps){.done = done, .user = user};
    call->state = steps;
    call->end = end;
    return steps;
}

void engine_steps_add(struct engine_steps *steps, enum message_id id, const char *url, const char *version)
{
    struct engine_step *more = realloc(steps->of, (steps->count + 1) * sizeof(*more));
    if (!more)
        return;
    steps->of = more;
    struct engine_step *step = &steps->of[steps->count++];
    step->id = id;
    snprintf(step->url, sizeof(step->url), "%s", url);
    snprintf(step->version, sizeof(step->version), "%s", version);
}

static void on_answer(struct http_call *call, const struct answer *answer)
{
    struct engine_steps *steps = call->state;
    if (answer->id == MSG_refused && !slice_is(answer->as.refused.reason, refusal_wire(REFUSAL_UNKNOWN_ENGINE))) {
        if (steps->refused)
            steps->refused(call);
        http_call_refuse_as(call, &answer->as.refused);
        return;
    }
    steps->at++;
    engine_steps_run(call);
}

static void ask(struct http_call *call, const struct engine_step *step)
{
    union any_message in;
    const struct slice url = slice_from_str(step->url);
    memset(&in, 0, sizeof(in));
    switch (step->id) {
    case MSG_engine_add: in.engine_add.url = url; break;
    case MSG_engine_remove: in.engine_remove.url = url; break;
    case MSG_policy_pause:
        in.policy_pause = (struct msg_policy_pause){
            .calls = slice_from_str("finish"), .bound_ms = PAUSE_MS, .engine = url, .has_engine = true};
        break;
    case MSG_policy_set:
        in.policy_set = (struct msg_policy_set){
            .version = slice_from_str(step->version), .engine = url, .has_engine = true};
        break;
    default: in.policy_resume = (struct msg_policy_resume){.engine = url, .has_engine = true}; break;
    }
    http_call_ask(call, step->id, &in, on_answer);
}

void engine_steps_run(struct http_call *call)
{
    struct engine_steps *steps = call->state;
    call->takes_refusals = steps->at < steps->count;
    if (steps->at < steps->count)
        ask(call, &steps->of[steps->at]);
    else
        steps->done(call);
}
