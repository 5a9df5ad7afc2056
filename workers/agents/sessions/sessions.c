#include "workers/agents/sessions/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/url.h"
#include "common/containers/table.h"
#include "common/digest/digest.h"
#include "common/net/listen_address.h"
#include "workers/agents/proxy/http/server.h"

enum { SECRET_BYTES = 32, HELD_MAX = 1 << 30 };

/* One session, that is or was. */
struct session_place {
    TAILQ_ENTRY(session_place) link; /* ended: in the order in which they did */
    struct sessions *sessions;
    struct server *server; /* NULL: it has ended, ... */
    bool has_reward;       /* ... and so */
    double reward;
    char digest[DIGEST_SIZE]; /* of its secret */
};

struct sessions {
    struct sessions_plan plan;
    struct http_listener *listener;
    char base[SESSIONS_URL_MAX + 1];
    struct table places; /* by digest, all of them */
    TAILQ_HEAD(, session_place) ended;
    size_t ended_count;
};

static struct slice name_of(const struct session_place *place) { return slice_from_str(place->digest); }

/* ---- who is meant ------------------------------------------------------------------------------------ */

/* What lies between /s/ and the next slash, or the end; *ret_path is there. False: the URL has no such form. */
static bool split(const char *url, struct slice *ret_secret, const char **ret_path)
{
    static const char before[] = "/s/";
    if (strncmp(url, before, sizeof(before) - 1) != 0)
        return false;
    const char *secret = url + sizeof(before) - 1;
    const size_t len = strcspn(secret, "/");
    *ret_secret = slice_of(secret, len);
    *ret_path = secret + len;
    return len > 0;
}

static struct session_place *find(const struct sessions *sessions, struct slice secret)
{
    char digest[DIGEST_SIZE];
    return digest_of(secret, digest) ? table_find(&sessions->places, slice_from_str(digest)) : NULL;
}

static void find_server(void *arg, const char *url, struct listener_found *ret)
{
    struct slice secret;
    ret->error = REPLY_UNKNOWN;
    ret->words = "there is no session here: a session's URL is BASE/s/SECRET";
    const struct session_place *place = split(url, &secret, &ret->path) ? find(arg, secret) : NULL;
    if (!place)
        return;
    ret->server = place->server;
    ret->error = REPLY_ENDED;
    ret->words = "the session has ended";
}

void sessions_write_ended(const double *reward, struct http_answer *ret)
{
    ret->status = 200;
    if (reward)
        buffer_printf(&ret->json, "{\"ended\":true,\"reward\":%.17g}", *reward);
    else
        buffer_append_str(&ret->json, "{\"ended\":true,\"reward\":null}");
}

/* Ending again what has ended is no mistake. */
static bool answer_ended(void *arg, const char *method, const char *url, struct http_answer *ret)
{
    struct slice secret;
    const char *path;
    if (strcmp(method, "POST") != 0 || !split(url, &secret, &path) || strcmp(path, SESSIONS_END) != 0)
        return false;
    const struct session_place *place = find(arg, secret);
    if (!place || place->server)
        return false;
    sessions_write_ended(place->has_reward ? &place->reward : NULL, ret);
    return true;
}

/* ---- places -------------------------------------------------------------------------------------------- */

static void forget(struct session_place *place)
{
    table_take(&place->sessions->places, name_of(place));
    free(place);
}

static void forget_oldest(struct sessions *sessions)
{
    struct session_place *oldest = TAILQ_FIRST(&sessions->ended);
    TAILQ_REMOVE(&sessions->ended, oldest, link);
    sessions->ended_count--;
    forget(oldest);
}

static void make_secret(char ret[2 * SECRET_BYTES + 1])
{
    unsigned char bytes[SECRET_BYTES];
    (void)!getrandom(bytes, sizeof(bytes), 0); /* so few bytes are always given */
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

struct session_place *sessions_open(struct sessions *sessions, struct server *server, struct job_session *job)
{
    char secret[2 * SECRET_BYTES + 1];
    struct session_place *place = calloc(1, sizeof(*place));
    if (!place)
        return NULL;
    *place = (struct session_place){.sessions = sessions, .server = server};
    make_secret(secret);
    if (!digest_of(slice_from_str(secret), place->digest) || !table_put(&sessions->places, name_of(place), place)) {
        free(place);
        return NULL;
    }
    snprintf(job->url, sizeof(job->url), "%s/s/%s", sessions->base, secret);
    job->is_new = true;
    explicit_bzero(secret, sizeof(secret));
    sessions->plan.changed(sessions->plan.arg);
    return place;
}

void sessions_close(struct session_place **place, const double *reward)
{
    struct session_place *it = take_ptr(place);
    if (!it)
        return;
    struct sessions *sessions = it->sessions;
    it->server = NULL;
    it->has_reward = reward != NULL;
    it->reward = reward ? *reward : 0;
    TAILQ_INSERT_TAIL(&sessions->ended, it, link);
    if (++sessions->ended_count > SESSIONS_ENDED_MAX)
        forget_oldest(sessions);
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

struct http_listener *sessions_listener(struct sessions *sessions) { return sessions->listener; }

/* What the world calls it. */
static int find_base(struct sessions *sessions, const struct listen_address *address, struct fail *fail)
{
    const char *given = sessions->plan.url;
    struct url url;
    struct fail why = {0};
    if (!given && address->is_any)
        return fail_set(fail, -EINVAL,
                        "--sessions %.200s: it listens on every address: say with --sessions-url what clients call it",
                        sessions->plan.address);
    if (given && (url_parse(slice_from_str(given), &url, &why) < 0 || url.credentials[0]))
        return fail_set(fail, -EINVAL, "--sessions-url: %s", why.text[0] ? why.text : "it must not hold credentials");
    snprintf(sessions->base, sizeof(sessions->base), "%s%s", given ? "" : "http://", given ? url.base : address->base);
    return 0;
}

static unsigned connections_of(const struct sessions_plan *plan)
{
    const uint64_t wanted = plan->slots * SERVER_CLIENTS_MAX;
    return wanted < SESSIONS_CONNECTIONS_MAX ? (unsigned)wanted : SESSIONS_CONNECTIONS_MAX;
}

static int open_listener(struct sessions *sessions, struct loop *loop, struct fail *fail)
{
    struct listen_address address;
    int code = listen_address_open("--sessions", sessions->plan.address, &address, fail);
    if (code == -EADDRINUSE)
        fail_set(fail, code, "--sessions %.200s: %s; each worker of a node needs a port of its own, and 0 takes any",
                 sessions->plan.address, strerror(EADDRINUSE));
    if (code == 0 && address.is_unix)
        code = fail_set(fail, -EINVAL, "--sessions %.200s: loops elsewhere reach no Unix socket: say HOST:PORT",
                        sessions->plan.address);
    if (code == 0)
        code = find_base(sessions, &address, fail);
    if (code < 0) {
        if (address.fd >= 0)
            close(address.fd);
        return code;
    }
    sessions->listener = listener_open(loop, &(struct listener_plan){.fd = address.fd,
                                                                     .connections_max = connections_of(&sessions->plan),
                                                                     .held_max = HELD_MAX,
                                                                     .find = find_server,
                                                                     .answer = answer_ended,
                                                                     .arg = sessions});
    if (!sessions->listener)
        return fail_set(fail, -ENOMEM, "--sessions %.200s: the HTTP server does not start", sessions->plan.address);
    log_event(address.is_loopback ? LOG_INFO : LOG_WARN, "sessions.open", "url=%s%s", sessions->base,
              address.is_loopback ? "" : " why=\"whoever reaches it and has a session's URL samples as that rollout\"");
    return 0;
}

struct sessions *sessions_create(struct loop *loop, const struct sessions_plan *plan, struct fail *fail)
{
    struct sessions *sessions = calloc(1, sizeof(*sessions));
    if (!sessions) {
        fail_memory(fail);
        return NULL;
    }
    sessions->plan = *plan;
    TAILQ_INIT(&sessions->ended);
    (void)!getrandom(&sessions->places.seed, sizeof(sessions->places.seed), 0);
    if (open_listener(sessions, loop, fail) < 0)
        sessions_destroy(&sessions);
    return sessions;
}

void sessions_destroy(struct sessions **sessions)
{
    struct sessions *it = take_ptr(sessions);
    if (!it)
        return;
    listener_close(&it->listener);
    while (it->ended_count > 0)
        forget_oldest(it);
    table_finish(&it->places);
    free(it);
}
