/*
 * up.h - `sluice up`: one broker and its workers on this machine, as one thing that is started,
 * kept running and stopped. up.c reads options and makes the plan; run.h carries it out;
 * registrar.h tells the broker of the engines.
 */
#ifndef SLUICE_CLIENT_CLI_UP_UP_H
#define SLUICE_CLIENT_CLI_UP_UP_H

#include "client/cli/up/child.h"
#include "client/cli/command.h"

struct up_options {
    struct texts engines, judges, teachers, grants, images, image_names, task_dirs, handlers, harnesses;
    struct texts model_dirs, hooks; /* of run workers */
    const char *data, *bind, *ipc, *ready_file, *keys, *search, *search_key, *sandbox, *sessions, *gateway;
    bool with_parent;
    uint64_t front, init, run, eval, slots, init_slots, run_slots, eval_slots, grace_ms, tries;
    uint64_t model_context, hook_ms, log_format;
};

struct up_stage {
    const char *name;
    uint64_t workers, slots; /* slots 0: the stage's own number */
    char slots_text[24];
};

/* Who tells the broker of the engines: a process of its own (registrar.h). */
struct registrar {
    pid_t pid; /* 0 once it has ended */
    bool succeeded;
};

struct up {
    const struct up_options *options;
    char broker_path[4096], worker_path[4096], gateway_path[4096];
    char store_path[4200];                  /* where the workers find it too, and the broker tidies up */
    char worker_key[4096], admin_key[4096]; /* --keys: two keys of its own */
    bool allow_plaintext;
    char bind[256], url[300], front[8], sink[8], feed[8], grace[64], tries[24]; /* arguments of children */
    char model_context[24], hook_timeout[40];                                   /* likewise */
    struct up_stage stages[3];
    struct child *children; /* the broker, the workers, the gateway if there is one */
    size_t child_count, worker_count;
    struct registrar registrar;
    int signal_fd, parent_fd; /* a pidfd of who started us, with --with-parent; else -1 */
    int failed;               /* the exit status of a broker that must not be started again, else 0 */
    unsigned stop_signals;    /* how often it was told to stop */
    bool stopping;
};

#endif
