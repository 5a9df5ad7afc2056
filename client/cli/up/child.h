/*
 * child.h - a process that `sluice up` keeps running: started, listened to until it says that it
 * is ready, reaped, started again after a pause that doubles while it keeps dying.
 *
 * A child has a process group of its own (Ctrl-C in the terminal reaches only `up`, which stops
 * its children in order) and gets SIGTERM should `up` be killed. Its stderr is ours; its stdout
 * is read: the line "<program> ready ..." says that it can be used.
 */
#ifndef SLUICE_CLIENT_CLI_UP_CHILD_H
#define SLUICE_CLIENT_CLI_UP_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"

enum { CHILD_ARGUMENTS_MAX = 1112 };

struct child {
    char title[32];                        /* "broker", "run worker 2" */
    const char *argv[CHILD_ARGUMENTS_MAX]; /* borrowed */
    size_t argument_count;
    pid_t pid; /* 0: not running */
    int out;   /* its stdout, or -1 */
    bool ready;
    char line[256]; /* what stdout said since the last newline; a longer line is cut */
    size_t line_len;
    int64_t started_ms, again_ms; /* again_ms: when to start it again, 0 for not */
    int64_t pause_ms;
};

/* Appends one argument; there is room for all that up needs (asserted). */
void child_add(struct child *child, const char *argument);
int child_start(struct child *child, int64_t now_ms, struct fail *fail);
/* Reads what stdout has; sets `ready`. */
void child_listen(struct child *child);
/* It has ended with this wait status: says so in words. */
void child_ended(struct child *child, int status, char *ret_words, size_t size);
/* Sets again_ms. */
void child_plan_restart(struct child *child, int64_t now_ms);
void child_signal(const struct child *child, int signal);

#endif
