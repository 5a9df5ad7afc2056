#include "broker/core/clients/session.h"
#include "broker/core/needs/needs.h"
#include "broker/core/needs/offers.h"
#include "broker/core/sessions/sessions.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/status/rollout_why.h"
#include "broker/core/streams/owners.h"
#include "schemas/task/task.h"

#include <stdlib.h>

/* One rollout that is asked for. */
struct asked {
    struct slice rollout;
    uint64_t after; /* only of a later attempt than this */
    struct group *group;
    uint32_t sample;
};

static bool is_session(const struct core *core, const struct group_work *work)
{
    const struct need *need = core->needs[work->run_need];
    return need && names_are_among(slice_from_str(TASK_SESSION_NEED), need_names(need));
}

/* Whether it has a session, or will; refuses, if not. */
static bool admit(struct core *core, const struct call *call, struct asked *asked)
{
    const struct slice rollout = asked->rollout;
    if (!rollout_find(core, rollout, &asked->group, &asked->sample)) {
        send_refused(core, call, REFUSAL_UNKNOWN_ROLLOUT, "rollout", 0, "there is no rollout %.*s", SLICE_ARG(rollout));
        return false;
    }
    if (!owners_allow(core, call, asked->group->stream, "rollout"))
        return false;
    struct group_work *work = asked->group->work;
    if (!work || rollout_has_ended(work, asked->sample))
        send_refused(core, call, REFUSAL_NO_SESSION, "rollout", 0, "%.*s has ended: rollout.get has its trajectory",
                     SLICE_ARG(rollout));
    else if (!is_session(core, work))
        send_refused(core, call, REFUSAL_NO_SESSION, "rollout", 0,
                     "%.*s has no session: only tasks whose agent.kind is session have", SLICE_ARG(rollout));
    else if (rollout_job(work, asked->sample)->stage == STAGE_EVAL)
        send_refused(core, call, REFUSAL_NO_SESSION, "rollout", 0, "the session of %.*s has ended, and is evaluated",
                     SLICE_ARG(rollout));
    else
        return true;
    return false;
}

/* Where it is; or, where that is all there is to say, why it is nowhere yet. False: it is not open. */
static bool tell(struct core *core, const struct call *call, const struct asked *asked, bool is_last)
{
    const struct group_work *work = asked->group->work;
    const struct job *job = rollout_job(asked->group->work, asked->sample);
    struct why why;
    struct msg_session_state state = {.tag = call->tag,
                                      .rollout = asked->rollout,
                                      .attempt = work->init_done ? job->course->attempt : 0,
                                      .url = session_url(core, job)};
    state.has_url = state.url.len > 0 && job->course->attempt > asked->after;
    if (!state.has_url && !is_last)
        return false;
    if (!state.has_url) {
        state.url = slice_of(NULL, 0);
        state.why = rollout_why(core, job, &why);
        state.has_why = state.why.len > 0;
    }
    send_client(core, call->client, MSG_session_state, &state);
    return true;
}

void handle_session_get(struct core *core, const struct call *call)
{
    const struct msg_session_get *in = call->in;
    struct asked asked = {.rollout = in->rollout, .after = in->has_after ? in->after : 0};
    const uint64_t wait_ms = in->has_wait_ms ? in->wait_ms : 0;
    if (!admit(core, call, &asked))
        return;
    stream_heard(core, call, asked.group->stream);
    if (!tell(core, call, &asked, wait_ms == 0) && !session_wait_add(core, call, in->rollout, asked.after, wait_ms))
        send_refused(core, call, REFUSAL_QUEUE_FULL, "rollout", RETRY_AFTER_MS,
                     "as many wait for sessions as may, %d in all and %zu of one client; try again later",
                     SESSION_WAITS_MAX, session_waits_max(core, call->caller->name));
}

/* Whose the rollout is was asked when the wait began. */
void sessions_tick(struct core *core)
{
    static const struct caller anybody = {.is_admin = true};
    for (struct session_wait *wait; (wait = session_wait_take(core)); free(wait)) {
        const struct call call = {.client = wait->client, .id = MSG_session_get, .tag = wait->tag, .caller = &anybody};
        struct asked asked = {.rollout = wait->rollout, .after = wait->after};
        if (admit(core, &call, &asked))
            tell(core, &call, &asked, true);
    }
}
