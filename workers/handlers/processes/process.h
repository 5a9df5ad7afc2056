/*
 * process.h - one process of a handler beside the worker: started, greeted, ended, and started again when it dies.
 *
 *     down --start--> starting --handler.hello--> ready --dies, breaks the protocol--> ending --reaped--> down
 *     down, after a delay: from the start
 *
 * Its hello is awaited for HANDLER_HELLO_MS. It is started again after HANDLER_AGAIN_MS, doubled up to
 * HANDLER_AGAIN_MAX_MS with each death that comes within HANDLER_LIVED_MS of its start or before it has done a job.
 * Its parent is sluice-supervisor (supervisor_main.c), which lets nothing of it outlive it, nor it the worker.
 * At the worker's end: handler_process_stop closes the socket; SIGTERM after HANDLER_TERM_MS, SIGKILL after
 * HANDLER_KILL_MS.
 */
#ifndef SLUICE_WORKERS_HANDLERS_PROCESSES_PROCESS_H
#define SLUICE_WORKERS_HANDLERS_PROCESSES_PROCESS_H

#include <sys/types.h>

#include "workers/handlers/wire/peer.h"
#include "workers/handlers/processes/said.h"

enum {
    HANDLER_HELLO_MS = 30000,
    HANDLER_AGAIN_MS = 100,
    HANDLER_AGAIN_MAX_MS = 30000,
    HANDLER_LIVED_MS = 60000,
    HANDLER_CLOSING_MS = 1000, /* from the end of its socket to its own */
    HANDLER_TERM_MS = 2000,
    HANDLER_KILL_MS = 5000
};

/* What --handler says: NAME=COMMAND or NAME=json:COMMAND. */
struct handler_spec {
    char name[HANDLER_NAME_MAX + 1];
    const char *command; /* borrowed */
    bool is_lines;
    bool is_hook; /* of --hook: it must offer one */
};
/* -EINVAL with a sentence. */
int handler_spec_parse(const char *text, struct handler_spec *ret, struct fail *fail);

struct handler_process {
    const struct handler_spec *spec;
    const char *stage; /* a stage's word */
    struct loop *loop;
    int program; /* the supervisor's */
    int64_t hello_ms;
    enum { HANDLER_DOWN, HANDLER_STARTING, HANDLER_READY, HANDLER_ENDING } state;
    bool is_stopping;
    pid_t pid; /* the supervisor's; 0: none */
    int pidfd;
    struct loop_watch *watch;
    struct loop_timer *timer; /* what its state waits for at most, or its next start */
    struct handler_peer peer;
    struct said said;
    int64_t started_ms;
    uint64_t done_before;       /* jobs, when it was started */
    unsigned deaths;            /* in a row */
    size_t lost;                /* jobs, since it was started */
    char why[256];              /* why it is not ready, for people; "": no reason is known */
    void (*changed)(void *arg); /* it became ready, or is so no longer, or has ended */
    void *arg;
};

/* Starts it at the loop's next turn; what is set before: spec, stage, loop, program, hello_ms, changed, arg. */
void handler_process_start(struct handler_process *process);
/* Takes nothing more from it, and lets it end; call once its jobs have ended. Down and without a pid when done. */
void handler_process_stop(struct handler_process *process);
/* Kills what is left, waiting for it. */
void handler_process_finish(struct handler_process *process);

#endif
