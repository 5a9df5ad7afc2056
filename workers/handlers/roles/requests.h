/*
 * requests.h - what a handler of any role may ask for: a command in the rollout's sandbox, its files, a note, the time.
 * The host of the job says where its sandbox is, which may be opened only then.
 */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_REQUESTS_H
#define SLUICE_WORKERS_HANDLERS_ROLES_REQUESTS_H

#include "schemas/trajectory/verdict.h"
#include "workers/handlers/wire/peer.h"
#include "workers/sandbox/sandbox.h"

struct handler_host {
    const struct task *task;
    /* Opens the sandbox where it is not open. 0, or negative errno with a sentence, which ends the job. */
    int (*open)(void *arg, struct sandbox **ret, struct fail *fail);
    /* Serves what only agents may ask for, likewise; NULL where no agent is at work. */
    int (*more)(void *arg, struct handler_job *job, struct fail *fail);
    void *arg;
    struct record *record; /* where notes go; NULL: metrics go into `notes`, words nowhere */
    struct verdict notes;  /* of handler.note: its metrics alone; verdict_finish it */
    bool is_inside;        /* the handler runs in the sandbox itself (own.h): handler.exec is refused */
    bool has_acted;        /* something was asked of the sandbox */
};

/*
 * Serves what the handler asks for until it has answered, in job->message: 0. Negative errno: the sandbox, the node, or
 * the time failed, which ends the job.
 */
int handler_serve(struct handler_host *host, struct handler_job *job, struct fail *fail);

/* Takes the metrics of a JSON object, a name again replacing its number. False with a refusal. */
bool handler_take_metrics(struct slice json, struct verdict *into, struct refusal *no);

/* Milliseconds until the current fiber's deadline; UINT64_MAX: it has none. */
uint64_t handler_left_ms(void);

#endif
