/*
 * sessions.h - the sessions of a worker: rollouts whose loops run elsewhere and speak to them over HTTP, all on one
 * listener (--sessions). Each has a URL of its own, BASE/s/SECRET, whose secret, 256 random bits, is all that anybody
 * needs: it is looked up by its digest, so that no time tells how much of it was guessed. Behind it the paths are those
 * of any rollout (proxy/http/server.h), and /end.
 *
 * A session that has ended is remembered for a while: who ends it again is told how it ended.
 */
#ifndef SLUICE_WORKERS_AGENTS_SESSIONS_SESSIONS_H
#define SLUICE_WORKERS_AGENTS_SESSIONS_SESSIONS_H

#include "common/base/fail.h"
#include "workers/jobs/job_session.h"
#include "common/loop/loop.h"

/* What a worker that has them tells the broker that it offers. */
#define SESSIONS_OFFER "agent:session@1"

enum { SESSIONS_ENDED_MAX = 1024, SESSIONS_CONNECTIONS_MAX = 8192, SESSIONS_URL_MAX = SESSION_URL_MAX - 70 };

struct http_answer;
struct http_listener;
struct server;
struct session_place;
struct sessions;

struct sessions_plan {
    const char *address;        /* HOST:PORT, or a port of the loopback */
    const char *url;            /* what the world calls it; NULL: http://HOST:PORT */
    uint64_t slots;             /* of the worker */
    void (*changed)(void *arg); /* a session was opened */
    void *arg;
};

/* -EINVAL for what is said of it, else what the system refused. */
struct sessions *sessions_create(struct loop *loop, const struct sessions_plan *plan, struct fail *fail);
/* All places are closed. NULL-safe. */
void sessions_destroy(struct sessions **sessions);

/* For server_open. */
struct http_listener *sessions_listener(struct sessions *sessions);
/* From now on the server is spoken to there; job->url is new. NULL: out of memory. */
struct session_place *sessions_open(struct sessions *sessions, struct server *server, struct job_session *job);
/* Nothing reaches its server any more. `reward` is what was posted; NULL: nothing. NULL-safe. */
void sessions_close(struct session_place **place, const double *reward);

/* What ending a session is answered with. */
void sessions_write_ended(const double *reward, struct http_answer *ret);
#define SESSIONS_END "/end" /* its path */

#endif
