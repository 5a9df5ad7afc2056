/*
 * said.h - what a handler writes to its standard output and error, in the worker's log: a line each (handler.said), cut
 * at SAID_LINE_MAX bytes, at most SAID_BURST at once and SAID_RATE a second; `unsaid` counts the rest.
 */
#ifndef SLUICE_WORKERS_HANDLERS_PROCESSES_SAID_H
#define SLUICE_WORKERS_HANDLERS_PROCESSES_SAID_H

#include <stdbool.h>
#include <stddef.h>

#include "common/loop/loop.h"

enum { SAID_LINE_MAX = 500, SAID_BURST = 200, SAID_RATE = 20 };

struct said {
    int fd; /* -1: closed */
    struct loop *loop;
    struct loop_watch *watch;
    const char *handler; /* borrowed */
    char line[SAID_LINE_MAX + 1];
    size_t len;
    int budget;
    int64_t refilled_ms;
    uint64_t unsaid;
};

/* Owns `fd`, the end of a pipe to read, not blocking. False when out of memory. */
bool said_open(struct said *said, struct loop *loop, int fd, const char *handler);
/* Logs what is there still. Idempotent. */
void said_close(struct said *said);

#endif
