#include "client/gateway/prorl/engine_steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"

enum {
    PAUSE_MS = 600000, /* of engines that were cleared: an update of weights takes less */
    AGAIN_MS = 100
};

static void end(struct http_call *call)
{
    struct engine_steps *steps = call->state;
    engine_steps_finish(steps, call->gateway->loop);
    free(steps);
}

void engine_steps_finish(struct engine_steps *steps, struct loop *loop)
{
    loop_cancel(loop, &steps->again);
    free(steps->of);
}

struct engine_steps *engine_steps_begin(struct http_call *call, void (*done)(struct http_call *call), void *user)
{
    struct engine_steps *steps = calloc(1, sizeof(*steps));
    if (!steps) {
        http_call_refuse_memory(call);
        return NULL;
    }
    *steps = (struct engine_steps){.done = done, .user = user, .ends_ms = clock_ms() + STEP_FINISH_MS};
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
    *step = (struct engine_step){.id = id};
    snprintf(step->url, sizeof(step->url), "%s", url);
    snprintf(step->version, sizeof(step->version), "%s", version);
}

void engine_steps_add_wait(struct engine_steps *steps, const char *url)
{
    const size_t before = steps->count;
    engine_steps_add(steps, MSG_policy_pause, url, "");
    if (steps->count > before)
        steps->of[before].waits = true;
}

static void on_again(void *arg)
{
    struct http_call *call = arg;
    struct engine_steps *steps = call->state;
    steps->again = NULL;
    engine_steps_run(call);
}

/* Calls are in flight still, and there is time. */
static bool asks_again(struct http_call *call, const struct answer *answer)
{
    struct engine_steps *steps = call->state;
    if (!steps->of[steps->at].waits || answer->id != MSG_done || answer->as.done.count == 0 ||
        clock_ms() > steps->ends_ms)
        return false;
    steps->again = loop_after(call->gateway->loop, AGAIN_MS, on_again, call);
    return steps->again != NULL;
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
    if (asks_again(call, answer))
        return;
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
