/*
 * peer.h - a handler at the other end of a connection: what it offers, the jobs it has, and whether it keeps to the
 * protocol. Whatever runs it (process.h, a sandbox) opens and closes it.
 *
 * A job here is the protocol's, from handler.begin on: an agent's run, an evaluation or one call of a tool, all within
 * one job of the worker's (struct job). It is a fiber's: it begins it, awaits what the handler asks for, replies, and
 * ends it. One request of a job is open at a time. A handler that says anything else than its turn allows is broken:
 * `broken` is called, once, and its owner then calls peer_close, by which all its jobs are lost (lost_code, blame.def).
 * What it says of a job that has ended without it is ignored and counted.
 */
#ifndef SLUICE_WORKERS_HANDLERS_WIRE_PEER_H
#define SLUICE_WORKERS_HANDLERS_WIRE_PEER_H

#include "common/containers/table.h"
#include "workers/handlers/wire/connection.h"
#include "workers/handlers/wire/offers.h"
#include "workers/runtime/fiber.h"

enum { PEER_JOBS_MAX = 2048, PEER_ANSWERED_KEPT = 64 };

struct handler_peer {
    struct connection connection; /* fd -1: closed */
    struct offers offers;
    bool has_hello;
    struct table jobs; /* of struct handler_job, by id */
    uint64_t last_id, done, ignored;
    uint64_t answered[PEER_ANSWERED_KEPT]; /* the last jobs that it ended itself */
    int lost_code;                         /* of jobs that it loses; 0: -EOWNERDEAD */
    void (*greeted)(void *arg);
    void (*broken)(void *arg, enum connection_break how, const char *why);
    void *arg;
};

/* Owns `fd`, and `out_fd` (connection.h). The caller has set greeted, broken and arg; all else is zero, but for
 * counters. False when out of memory. */
bool peer_open(struct handler_peer *peer, struct loop *loop, int fd, int out_fd, bool is_lines);
/* Loses all jobs, for that reason. Idempotent. */
void peer_close(struct handler_peer *peer, const char *why);
static inline bool peer_is_ready(const struct handler_peer *peer)
{
    return peer->connection.fd >= 0 && !peer->connection.why.code && peer->has_hello;
}

/* One job, in its fiber's memory, which it must not outlive. */
struct handler_job {
    struct handler_peer *peer; /* NULL: it has not begun, or was ended */
    uint64_t id;
    enum handler_role role;
    struct fiber *fiber;
    struct handler_message message; /* that came last */
    bool has_message;               /* it was not looked at yet */
    bool is_open;                   /* a request that is not replied to */
    bool is_answered;               /* the handler has ended it */
    struct fail lost;
};

/* Sends handler.begin, whose id and role are filled in here. 0; -EINVAL with a sentence: it breaks the schema. */
int handler_job_begin(struct handler_job *job, struct handler_peer *peer, enum handler_role role,
                      struct msg_handler_begin *begin, struct fail *fail);
/* Awaits job->message: a request, or the answer. 0, what it was lost with, -ETIMEDOUT or -ECANCELED. */
int handler_job_next(struct handler_job *job, struct fail *fail);
/* To the request; id and call are filled in here. What breaks the schema becomes a refusal. */
void handler_job_reply(struct handler_job *job, struct msg_handler_reply *reply);
void handler_job_refuse(struct handler_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Forgets it, and tells a handler that has not answered why. Idempotent. */
void handler_job_end(struct handler_job *job, const char *why);

#endif
