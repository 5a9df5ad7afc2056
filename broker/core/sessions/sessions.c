#include "broker/core/sessions/sessions.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/quotas.h"

#include <stdlib.h>

/* ---- where they are ---------------------------------------------------------------- */

struct session {
    uint64_t token; /* of its dispatch: its name in core->sessions */
    size_t len;
    char url[];
};

static struct slice name_of(const uint64_t *token) { return slice_of(token, sizeof(*token)); }

struct slice session_url(const struct core *core, const struct job *job)
{
    const struct session *session = job->place == PLACE_LEASED
                                        ? table_find(&core->sessions, name_of(&job->course->token))
                                        : NULL;
    return session ? slice_of(session->url, session->len) : slice_of(NULL, 0);
}

void session_forget(struct core *core, const struct job *job)
{
    free(table_take(&core->sessions, name_of(&job->course->token)));
}

void session_set(struct core *core, const struct job *job, struct slice url)
{
    session_forget(core, job);
    struct session *session = core_alloc(core, 1, sizeof(*session) + url.len);
    if (!session)
        return;
    session->token = job->course->token;
    session->len = url.len;
    memcpy(session->url, url.data, url.len);
    if (table_put(&core->sessions, name_of(&session->token), session))
        return;
    core->failed = true;
    free(session);
}

void sessions_finish(struct core *core)
{
    size_t at = 0;
    for (struct session *session; (session = table_next(&core->sessions, &at));)
        free(session);
    table_finish(&core->sessions);
    while (core->session_waits.count > 0) {
        struct heap_node *first = heap_peek(&core->session_waits);
        heap_remove(&core->session_waits, first);
        free(container_of(first, struct session_wait, due));
    }
    heap_finish(&core->session_waits);
}

/* ---- who waits --------------------------------------------------------------------- */

static struct session_wait *wait_nth(const struct core *core, size_t i)
{
    return container_of(core->session_waits.nodes[i], struct session_wait, due);
}

/* A client sends a request that is not answered again, with the same tag. */
static bool waits_already(const struct core *core, const struct call *call)
{
    for (size_t i = 0; i < core->session_waits.count; i++) {
        const struct session_wait *wait = wait_nth(core, i);
        if (wait->tag == call->tag && slice_equal(wait->client, call->client))
            return true;
    }
    return false;
}

size_t session_waits_max(const struct core *core, struct slice name)
{
    return SESSION_WAITS_MAX * quota_share_percent(core, name) / 100;
}

static bool has_room(const struct core *core, struct slice name)
{
    size_t own = 0;
    for (size_t i = 0; i < core->session_waits.count; i++)
        own += slice_equal(wait_nth(core, i)->owner, name);
    return core->session_waits.count < SESSION_WAITS_MAX && own < session_waits_max(core, name);
}

static struct slice put(uint8_t *at, struct slice text)
{
    if (text.len > 0)
        memcpy(at, text.data, text.len);
    return slice_of(at, text.len);
}

bool session_wait_add(struct core *core, const struct call *call, struct slice rollout, uint64_t after,
                      uint64_t wait_ms)
{
    if (waits_already(core, call))
        return true;
    const struct slice owner = call->caller->name;
    if (!has_room(core, owner))
        return false;
    struct session_wait *wait = core_alloc(core, 1, sizeof(*wait) + call->client.len + owner.len + rollout.len);
    if (!wait)
        return true;
    wait->tag = call->tag;
    wait->after = after;
    wait->client = put(wait->text, call->client);
    wait->owner = put(wait->text + call->client.len, owner);
    wait->rollout = put(wait->text + call->client.len + owner.len, rollout);
    if (heap_put(&core->session_waits, &wait->due, core->now_ms + (int64_t)wait_ms))
        return true;
    core->failed = true;
    free(wait);
    return true;
}

void session_waits_wake(struct core *core, const struct job *job)
{
    if (core->session_waits.count == 0)
        return;
    const struct slice rollout = rollout_name(core, job);
    for (size_t i = 0; i < core->session_waits.count;) {
        struct session_wait *wait = wait_nth(core, i++);
        if (wait->due.key > core->now_ms && slice_equal(wait->rollout, rollout)) {
            heap_put(&core->session_waits, &wait->due, core->now_ms); /* it is in: this takes no memory */
            i = 0;
        }
    }
}

struct session_wait *session_wait_take(struct core *core)
{
    struct heap_node *first = heap_peek(&core->session_waits);
    if (!first || first->key > core->now_ms)
        return NULL;
    heap_remove(&core->session_waits, first);
    return container_of(first, struct session_wait, due);
}
