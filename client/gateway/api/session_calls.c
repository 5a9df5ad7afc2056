#include "client/gateway/api/session_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/gateway/api/native.h"
#include "client/gateway/http_call.h"
#include "client/gateway/outgoing/relay.h"
#include "client/lib/stream/trajectory_view.h"
#include "common/base/cleanup.h"

#define END "/end"

/* A worker that goes on with its session tells a broker that is new of it; until then it is waited for. */
enum { OPEN_MS = 5000, ATTEMPT_MAX = 1000000 };

struct session_call {
    char rollout[160];
    uint64_t attempt;
    struct relay *relay;
};

/* ---- URLs -------------------------------------------------------------------------------------------------- */

/* All bytes but these and letters and digits as %XX. */
static void append_escaped(struct buffer *ret, struct slice text, const char *plain)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = (char)text.data[i];
        const bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (is_word || (c && strchr(plain, c)))
            buffer_append(ret, &c, 1);
        else
            buffer_printf(ret, "%%%02X", (unsigned char)c);
    }
}

static void append_path(struct buffer *ret, struct slice path) { append_escaped(ret, path, "/-._~!$&'()*+,;=:@"); }

/* As it came, so that what is escaped in it stays so. */
static void append_query(struct buffer *ret, const char *target)
{
    const char *query = strchr(target, '?');
    if (query)
        append_escaped(ret, slice_from_str(query), "/-._~!$&'()*+,;=:@?%[]");
}

static bool is_https(const struct http_call *call)
{
    const char *before = exchange_header(call->exchange, "X-Forwarded-Proto"); /* of a proxy with TLS in front */
    return call->gateway->settings->certificate_path || (before && strcasecmp(before, "https") == 0);
}

void session_calls_append_url(const struct http_call *call, struct slice rollout, uint64_t attempt, struct buffer *ret)
{
    const char *host = exchange_header(call->exchange, "Host");
    if (host && *host)
        buffer_printf(ret, "%s://%s", is_https(call) ? "https" : "http", host);
    buffer_append_str(ret, "/api/v1/sessions/");
    append_path(ret, rollout);
    buffer_printf(ret, "/%llu", (unsigned long long)attempt);
}

/* ---- passing it on -------------------------------------------------------------------------------------------- */

static void end(struct http_call *call)
{
    struct session_call *passed = call->state;
    relay_end(&passed->relay);
    free(passed);
}

static void on_failed(void *arg, const char *why)
{
    http_call_refuse(arg, 502, "session-away", "", "the session's worker does not answer: %s", why);
}

static void pass_on(struct http_call *call, struct slice base)
{
    struct session_call *passed = call->state;
    struct native *native = call->kept;
    AUTO_BUFFER url = {0};
    buffer_append(&url, base.data, base.len);
    append_path(&url, http_call_part(call, "rest"));
    append_query(&url, exchange_target(call->exchange));
    buffer_append(&url, "", 1);
    call->is_stream = true; /* a turn's time is the engine's, not this answer's */
    const struct relay_plan plan = {.server = call->gateway->server,
                                    .exchange = call->exchange,
                                    .url = (const char *)url.data,
                                    .failed = on_failed,
                                    .arg = call};
    passed->relay = url.failed ? NULL : relay_begin(native->relays, &plan);
    if (!passed->relay)
        http_call_refuse(call, 503, "queue-full", "", "too many calls of sessions are under way");
}

/* ---- where it is ----------------------------------------------------------------------------------------------- */

static void refuse_lost(struct http_call *call, uint64_t attempt)
{
    http_call_refuse(
        call, 410, "session-lost", "attempt",
        "the session was lost with its worker, and attempt %llu began anew: ask for its URL, and begin from the "
        "first message",
        (unsigned long long)attempt);
}

static void answer_ended(struct http_call *call, const struct sluice_trajectory *trajectory)
{
    const struct session_call *passed = call->state;
    struct buffer body = {0};
    if (trajectory && trajectory->run_attempt > passed->attempt) {
        refuse_lost(call, trajectory->run_attempt);
        return;
    }
    if (trajectory && trajectory->has_reward)
        json_text_printf(&body, "{\"ended\":true,\"reward\":%g}", trajectory->raw_reward);
    else
        buffer_append_str(&body, "{\"ended\":true,\"reward\":null}");
    http_call_answer_json(call, 200, &body);
}

/* Who ends again what has ended is told what counts, as the worker does for a while. */
static void on_ended(struct http_call *call, const struct answer *answer)
{
    struct trajectory_view view = {0};
    struct refusal no;
    if (answer->id != MSG_trajectory)
        answer_ended(call, NULL); /* it is evaluated */
    else if (trajectory_view_read(&view, &answer->as.trajectory, &no))
        answer_ended(call, &view.out);
    else
        http_call_refuse(call, 500, "bad-record", no.field, "%s", no.text);
    trajectory_view_finish(&view);
}

static void on_refused(struct http_call *call, const struct msg_refused *refused)
{
    const struct session_call *passed = call->state;
    struct msg_rollout_get in = {.rollout = slice_from_str(passed->rollout)};
    const bool is_end = slice_is(http_call_part(call, "rest"), END) &&
                        strcmp(exchange_method(call->exchange), "POST") == 0;
    call->takes_refusals = false;
    if (is_end && slice_is(refused->reason, refusal_wire(REFUSAL_NO_SESSION)))
        http_call_ask(call, MSG_rollout_get, &in, on_ended);
    else
        http_call_refuse_as(call, refused);
}

static void on_state(struct http_call *call, const struct answer *answer)
{
    const struct session_call *passed = call->state;
    const struct msg_session_state *state = &answer->as.session_state;
    if (answer->id == MSG_refused)
        on_refused(call, &answer->as.refused);
    else if (state->attempt > passed->attempt)
        refuse_lost(call, state->attempt);
    else if (state->has_url)
        pass_on(call, state->url);
    else
        http_call_refuse(
            call, 503, "no-session", "rollout", "the session is not open: %.*s",
            SLICE_ARG(state->has_why ? state->why : slice_from_str("its worker does not say where it is")));
}

static bool read_attempt(struct http_call *call, uint64_t *ret)
{
    char text[16];
    char *rest;
    if (!http_call_param(call, "attempt", text, sizeof(text)))
        return false;
    *ret = strtoull(text, &rest, 10);
    if (*text >= '1' && *text <= '9' && !*rest && *ret <= ATTEMPT_MAX)
        return true;
    http_call_refuse(call, 404, "not-found", "attempt", "a session's URL ends in the number of its attempt");
    return false;
}

void session_call_run(struct http_call *call)
{
    struct session_call *passed = call->state = calloc(1, sizeof(*passed));
    if (!passed) {
        http_call_refuse_memory(call);
        return;
    }
    call->end = end;
    if (!http_call_param(call, "rollout", passed->rollout, sizeof(passed->rollout)) ||
        !read_attempt(call, &passed->attempt))
        return;
    struct msg_session_get in = {.rollout = slice_from_str(passed->rollout),
                                 .after = passed->attempt - 1,
                                 .has_after = true,
                                 .wait_ms = OPEN_MS,
                                 .has_wait_ms = true};
    call->takes_refusals = true;
    http_call_ask(call, MSG_session_get, &in, on_state);
}
