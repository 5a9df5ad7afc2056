/*
 * session.c - the agent that is a loop of somebody else's, elsewhere: it speaks to its model, which is this rollout
 * (proxy.h), at a URL of its own on the worker's listener (sessions.h), and ends it with a POST to /end.
 *
 * Who is out there cannot be seen. So a budget that is used up does not end it at once, which leaves the loop the time
 * to post its reward; and silence does, after agent.idle_s.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/ends.h"
#include "workers/agents/kinds/agents.h"
#include "workers/agents/proxy/http/server.h"
#include "workers/agents/sessions/posted.h"
#include "workers/agents/sessions/sessions.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"

enum { OVER_MS = 30000 };

struct session {
    struct agent_run *run;
    struct fiber *fiber; /* the agent's */
    struct proxy proxy;
    struct server *server;
    struct session_place *place;
    bool is_ended; /* by a POST, ... */
    bool is_idle;  /* ... or by silence */
    bool is_unheard;
};

static const double *reward_of(const struct session *session)
{
    const struct verdict *posted = &session->run->session->posted;
    return posted->has_reward ? &posted->reward : NULL;
}

/* ---- its end ------------------------------------------------------------------------------------------- */

static void refuse_end(const struct refusal *no, struct http_answer *ret)
{
    ret->status = no->reason == REFUSAL_TOO_LARGE ? 413 : 400;
    dialect_chat.write_error(REPLY_INVALID, no->text, &ret->json);
}

/* The first that is whole counts. */
static void take_end(struct session *session, struct slice body, struct http_answer *ret)
{
    struct agent_run *run = session->run;
    struct refusal no = {0};
    AUTO_VERDICT posted = {0};
    if (!session->is_ended && !posted_read(body, run->task->eval_kind, &posted, &no)) {
        refuse_end(&no, ret);
        return;
    }
    if (!session->is_ended) {
        run->session->posted = posted;
        posted = (struct verdict){0};
        session->is_ended = true;
        fiber_wake(session->fiber);
    }
    sessions_write_ended(reward_of(session), ret);
}

static bool on_other(void *arg, const char *method, const char *path, struct slice body, struct http_answer *ret)
{
    if (strcmp(path, SESSIONS_END) != 0)
        return false;
    if (strcmp(method, "POST") == 0) {
        take_end(arg, body, ret);
    } else {
        ret->status = 405;
        dialect_chat.write_error(REPLY_INVALID, "a session is ended by POST", &ret->json);
    }
    return true;
}

static void on_turn(void *arg)
{
    const struct session *session = arg;
    fiber_wake(session->fiber);
}

/* ---- until then ------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* How long until something has to be looked at again; 0 or less: it is over. */
static int64_t left_ms(const struct session *session)
{
    const int64_t idle_ms = (int64_t)session->run->task->idle_s * 1000;
    const int64_t most_ms = session->proxy.over == PROXY_GOES_ON ? idle_ms : earlier(idle_ms, OVER_MS);
    return most_ms - server_silent_ms(session->server);
}

static void note_heard(struct session *session)
{
    if (session->is_unheard)
        activity_leave(PHASE_WAITING);
    session->is_unheard = false;
    activity_go_on();
}

/*
 * Its own deadline may have moved while it slept: time in which an engine was paused is given back. While a request is
 * at work nothing is silent, and its end wakes this.
 */
static int await_end(struct session *session)
{
    while (!session->is_ended && session->proxy.error == 0) {
        const int64_t left = left_ms(session);
        session->is_idle = left <= 0;
        if (session->is_idle)
            return 0;
        const int error = await_wake(left);
        if (error == -ECANCELED || (error == -ETIMEDOUT && fiber_is_late()))
            return error;
        if (session->proxy.requests > 0)
            note_heard(session);
    }
    return 0;
}

/* Until somebody has spoken to it, it waits for that. */
static int await_end_of(struct session *session)
{
    session->is_unheard = true;
    activity_wait("nobody has spoken to its session yet");
    activity_enter(PHASE_WAITING);
    const int error = await_end(session);
    note_heard(session);
    return error;
}

static int work(struct session *session, struct fail *fail)
{
    struct agent_run *run = session->run;
    session->server = server_open(&(struct server_plan){.listener = sessions_listener(run->sessions),
                                                        .proxy = &session->proxy,
                                                        .changed = on_turn,
                                                        .answer = on_other,
                                                        .arg = session});
    session->place = session->server ? sessions_open(run->sessions, session->server, run->session) : NULL;
    const int error = session->place ? await_end_of(session) : fail_memory(fail);
    sessions_close(&session->place, reward_of(session));
    run->session->url[0] = '\0'; /* nobody is to be told of it any more */
    run->session->is_new = false;
    server_close(&session->server);
    return error;
}

/* ---- how it ended ------------------------------------------------------------------------------------------ */

static enum outcome end_over(const struct session *session)
{
    static const enum end ends[] = {[PROXY_OVER_TURNS] = END_TURNS, [PROXY_OVER_TOKENS] = END_TOKENS};
    const struct proxy *proxy = &session->proxy;
    return proxy->over == PROXY_OVER_CONTEXT ? model_end(&proxy->model, -E2BIG, &proxy->fail)
                                             : agent_end_by(session->run, ends[proxy->over], "%s", proxy->fail.text);
}

/* A loop that never came is no doing of the policy's, and nothing that is to be scored. */
static enum outcome end_idle(const struct session *session)
{
    struct agent_run *run = session->run;
    const unsigned long long idle_s = (unsigned long long)run->task->idle_s;
    if (session->proxy.requests == 0)
        return agent_end(run, OUTCOME_TASK, "nobody spoke to the session within agent.idle_s, %llu s", idle_s);
    if (session->proxy.model.turns == 0 && session->proxy.refused.code < 0)
        return agent_end(run, OUTCOME_TASK, "the session has no turn: %s", session->proxy.refused.text);
    return agent_end_by(run, END_IDLE, "nobody spoke to the session for agent.idle_s, %llu s", idle_s);
}

static enum outcome end(const struct session *session, int error, const struct fail *fail)
{
    const struct proxy *proxy = &session->proxy;
    if (error < 0)
        return model_end(&proxy->model, error, fail);
    if (proxy->error != 0)
        return model_end(&proxy->model, proxy->error, &proxy->fail);
    if (proxy->over != PROXY_GOES_ON)
        return end_over(session);
    return session->is_idle
               ? end_idle(session)
               : agent_end(session->run, OUTCOME_OK, "the session was ended after %zu turns", proxy->model.turns);
}

static enum outcome session_run(struct agent_run *run)
{
    struct fail fail = {0};
    struct session session = {.run = run, .fiber = fiber_current()};
    if (!run->sessions)
        return agent_end(run, OUTCOME_INFRA, "this worker takes no sessions: sluice-worker run --sessions");
    int error = proxy_open(&session.proxy, run, &fail);
    if (error == 0)
        error = work(&session, &fail);
    error = proxy_settle(&session.proxy, error, &fail);
    enum outcome outcome = end(&session, error, &fail);
    if (!proxy_record(&session.proxy))
        outcome = agent_end(run, OUTCOME_INFRA, "out of memory, or the record is full");
    proxy_close(&session.proxy);
    return outcome;
}

const struct agent agent_session = {
    .name = "session",
    .doc = "a loop of anyone's, elsewhere, that speaks to its model over HTTP",
    .needs_engine = true,
    .run = session_run,
};
