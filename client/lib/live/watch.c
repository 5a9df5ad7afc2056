/* watch.c - what sluice.h says of watching rollouts: asking again and again, and waiting for what comes. */
#include "client/lib/live/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "client/lib/live/watching.h"
#include "client/lib/request.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { AWAY_MS = 200 };

void watch_close(struct watching **closing)
{
    struct watching *watching = take_ptr(closing);
    if (watching)
        watching_finish(watching);
    free(watching);
}

/* ---- answers ------------------------------------------------------------------------------ */

static bool offer_watching(struct sluice_client *client, struct answer *answer)
{
    return watching_hear(client->watching, answer, clock_ms());
}

/* Each is told once. */
static int fail_refused(struct sluice_client *client)
{
    struct watching *watching = client->watching;
    const int refused = watching->refused;
    watching->refused = 0;
    return client_fail(client, refused, "%s", watching->refused_text);
}

/* ---- asking ------------------------------------------------------------------------------- */

/* False: it could not be sent, as the broker is away. */
static bool ask(struct sluice_client *client, struct watch *watch, int64_t now_ms)
{
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    watch->wants_anew |= watch->unheard_ms != 0; /* whoever answers may be another broker, whose worker is asked anew */
    const struct msg_rollout_watch message = watching_message(watch);
    if (message_encode(MSG_rollout_watch, &message, &bytes, &no) && !front_try_send(client, buffer_peek(&bytes))) {
        watch->unheard_ms = watch->unheard_ms ? watch->unheard_ms : now_ms;
        return false;
    }
    watching_note_asked(watch, now_ms);
    return true;
}

/* Asks what is due; when to ask again. */
static int64_t ask_due(struct sluice_client *client, int64_t now_ms, bool *away)
{
    int64_t due_ms = now_ms + ASK_MS;
    *away = false;
    for (struct watch *watch = client->watching->first; watch; watch = watch->next) {
        if (!watch->is_ended && watch->ask_ms <= now_ms && !*away)
            *away = !ask(client, watch, now_ms);
        if (!watch->is_ended && watch->ask_ms > now_ms && watch->ask_ms < due_ms)
            due_ms = watch->ask_ms;
    }
    return *away && due_ms > now_ms + AWAY_MS ? now_ms + AWAY_MS : due_ms;
}

static bool has_lost_patience(const struct sluice_client *client, int64_t now_ms)
{
    for (const struct watch *watch = client->watching->first; watch; watch = watch->next)
        if (client->patience_ms >= 0 && watch->unheard_ms && now_ms - watch->unheard_ms > client->patience_ms)
            return true;
    return false;
}

/* ---- sluice.h ------------------------------------------------------------------------------ */

static int begin(struct sluice_client *client, struct watch *watch)
{
    AUTO_ANSWER answer = {0};
    watch->wants_anew = true;
    const struct msg_rollout_watch message = watching_message(watch);
    int failed = request_call(client, MSG_rollout_watch, &message, watch->tag, &answer);
    if (failed)
        return failed;
    watching_note_asked(watch, clock_ms());
    return watching_hear(client->watching, &answer, clock_ms()) &&
                   (answer.id == MSG_rollout_state || answer.id == MSG_done)
               ? 0
               : client_unexpected(client, &answer);
}

int sluice_watch(struct sluice_client *client, const char *rollout)
{
    client->error[0] = '\0';
    if (!client->watching && !(client->watching = calloc(1, sizeof(*client->watching))))
        return client_fail(client, -ENOMEM, "out of memory");
    client->offer_watching = offer_watching;
    if (watching_find(client->watching, rollout))
        return 0;
    if (client->watching->count >= WATCHES_MAX)
        return client_fail(client, -ENOSPC, "a client watches at most %d rollouts at once", WATCHES_MAX);
    struct watch *watch = watching_add(client->watching, rollout);
    if (!watch)
        return client_fail(client, -ENOMEM, "out of memory");
    watch->tag = ++client->last_tag;
    const int failed = begin(client, watch);
    if (failed)
        watching_remove(client->watching, watch);
    return failed;
}

void sluice_unwatch(struct sluice_client *client, const char *rollout)
{
    struct watch *watch = client->watching ? watching_find(client->watching, rollout) : NULL;
    if (watch)
        watching_remove(client->watching, watch);
}

static int await_front(struct sluice_client *client, int64_t wait_ms, bool away)
{
    zmq_pollitem_t front = {client->front, 0, (short)(ZMQ_POLLIN | (away ? ZMQ_POLLOUT : 0)), 0};
    const int got = zmq_poll(&front, 1, wait_ms > 0 ? wait_ms : 0);
    return got < 0 && errno == EINTR ? client_fail(client, -EINTR, "a signal came") : 0;
}

int sluice_watch_next(struct sluice_client *client, int64_t timeout_ms, const char **ret)
{
    const int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms;
    *ret = NULL;
    client->error[0] = '\0';
    if (!client->watching || (!client->watching->first && !client->watching->refused))
        return client_fail(client, -ENOENT, "no rollout is watched (any more)");
    int failed = front_open(client);
    while (!failed) {
        AUTO_ANSWER answer = {0};
        bool away;
        const int64_t due_ms = ask_due(client, clock_ms(), &away);
        while (front_read(client, &answer))
            client_offer(client, &answer);
        if ((*ret = watching_take(client->watching)))
            return 0;
        if (client->watching->refused)
            return fail_refused(client);
        const int64_t now_ms = clock_ms();
        if (has_lost_patience(client, now_ms))
            return link_fail(client);
        if (now_ms >= deadline_ms)
            return client_fail(client, -EAGAIN, "nothing was heard of what is watched");
        failed = await_front(client, (due_ms < deadline_ms ? due_ms : deadline_ms) - now_ms, away);
    }
    return failed;
}
