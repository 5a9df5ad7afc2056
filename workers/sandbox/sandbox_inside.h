/*
 * sandbox_inside.h - the worker's side of a sandbox, shared by sandbox.h (its life), requests.h
 * (what is asked of its pid 1) and spawner_start.h (the spawner's life). Nobody else includes it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SANDBOX_INSIDE_H
#define SLUICE_WORKERS_SANDBOX_SANDBOX_INSIDE_H

#include <string.h>

#include "common/base/buffer.h"
#include "workers/sandbox/channel.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/sandbox.h"
#include "workers/sandbox/container/plan.h"

struct spawner {
    pid_t pid;
    enum tier tier;
    int socket; /* until it is attached */
    struct channel channel;
    struct sandbox *sandboxes;
    struct usage *usages;
    const struct cgroups *cgroups; /* or NULL */
    bool is_in_memory;             /* what sandboxes write */
    uint32_t last_usage;
};

struct process { /* started and not yet waited for */
    struct process *next;
    struct wire_head start; /* its id is also the end's */
    pid_t pid;              /* 0 until the start is answered */
    bool ended;
    int status;
    struct fiber *waiter;
};

struct sandbox {
    struct sandbox *next;
    struct spawner *spawner; /* NULL once that is stopped */
    uint32_t id;             /* the spawner's name for it */
    unsigned holds;          /* the owner's and one for each call under way */
    bool closed, alive, kernels;
    bool spares;             /* commands end what they started alone */
    bool is_starved;         /* killed for memory that others took */
    uint64_t starved_before; /* starved_count() when it was opened */
    char breach[16];
    uint64_t numbers;
    struct usage *shared;        /* its usage; given back with the sandbox */
    int cgroup;                  /* -1 */
    struct cgroup_limits limits; /* whoever holds them */
    struct sandbox_usage usage;  /* what is counted here: commands and their output */
    int pidfd, end_signal, commands, outputs;
    char run_path[CONTAINER_PATH_SIZE];
    char *workdir;           /* NULL: the workspace */
    struct buffer variables; /* NUL-ended, one after the other */
    size_t variable_count;
    int listeners[LISTENERS_MAX];
    struct channel channel; /* to its pid 1 */
    uint64_t touched_count;
    struct buffer touched; /* as touched_write has it */
    struct process *processes;
};

/* It is of no more use: who waits for its processes is woken. */
void sandbox_stop_using(struct sandbox *sandbox);
/* The kernel says nothing when it kills: it is asked. */
void sandbox_hear_kernel(struct sandbox *sandbox);
/* Out of the spawner's list, and what it used is noted for the last time. */
void sandbox_unlist(struct sandbox *sandbox);

/* Sets the sentence and returns the code. */
static inline int sandbox_say(struct fail *fail, int code, const char *what)
{
    return fail_set(fail, code, "%s: %s", what, strerror(-code));
}

static inline void cleanup_hold(struct sandbox **sandbox) { sandbox_release(*sandbox); }

/* A caller that awaits keeps the memory, also when the owner closes meanwhile. */
#define HOLD(sandbox)                                                                                                  \
    __attribute__((cleanup(cleanup_hold), unused)) struct sandbox *held_ = (sandbox);                                  \
    sandbox_hold(held_)

#endif
