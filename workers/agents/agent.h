/*
 * agent.h - agents: a table of ways to drive a model over a task (agents.c). An agent runs in
 * a fiber, writes the record as it goes, and says how it ended. One agent, one file.
 */
#ifndef SLUICE_WORKERS_AGENTS_AGENT_H
#define SLUICE_WORKERS_AGENTS_AGENT_H

#include "schemas/task/task.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/agents/staleness.h"
#include "workers/engines/engine.h"
#include "workers/jobs/job_session.h"
#include "workers/sandbox/sandbox.h"

struct engine_migration;
struct hook_source;
struct search;
struct sessions;
struct job;
struct tool_source;

struct agent_run {
    const struct task *task;
    uint64_t sample;
    struct engine *engine;              /* NULL for agents that need none; may be another from turn to turn */
    struct engine_migration *migration; /* asks for that; NULL: nobody does */
    struct sandbox *sandbox;            /* NULL for agents without tools */
    struct search *search;              /* the worker's web search; NULL: it has none */
    struct sessions *sessions;          /* the worker's; NULL: it takes none */
    struct job_session *session;        /* of an agent that is one: filled in */
    struct tool_source *tools;          /* of tools that are not built in; NULL: there are none */
    struct hook_source *hooks;          /* between harnesses and their model (hook.h); NULL: there are none */
    const struct job *job;              /* for agents of handlers; else it may be NULL */
    /* Opens the sandbox of one that began without; 0 and `sandbox`, else `open_fault` is to blame, if that is known. */
    int (*open_sandbox)(struct agent_run *run, struct fail *fail);
    void *open_arg;
    /* Writes files into the sandbox, which is open. -EINVAL: by the fault of a file, else negative errno. */
    int (*put_files)(struct agent_run *run, const struct task_file *files, size_t count, struct fail *fail);
    /* The listener inside the sandbox that the agent answers on as the model; the caller's. For harnesses alone. */
    int (*take_listener)(struct agent_run *run);
    enum fault open_fault;
    bool has_open_failed;
    const char *reason;    /* why it is another conversation of its record; NULL: it is the first */
    struct record *record; /* filled in; also when it fails */
    struct staleness age;  /* of its turns; all zero at first */
    char *answer;          /* out: the agent's last words; free */
    char detail[1024];     /* out: why it ended, one line */
    char end[16];          /* out: the same as a code (docs/trajectory.md); "": not by itself or a limit */
    enum fault fault;      /* out: what is to blame for INFRA, where that is known */
};

struct agent {
    const char *name, *doc;
    const char *prompt; /* the system message, where the task has none of its own; NULL: none */
    bool needs_engine, needs_sandbox;
    /* Awaits. How the agent's part ended: OK, AGENT (its budget), TASK, INFRA or CANCELLED. */
    enum outcome (*run)(struct agent_run *run);
};

#endif
