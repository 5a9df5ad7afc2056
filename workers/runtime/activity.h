/*
 * activity.h - what a job's fiber is at, in words for people: the turn, the last tool, what it waits for. Whoever works
 * in the fiber says so where it happens; the worker tells the broker of those that changed (service/load_reports.h).
 * In a fiber without one, and outside of fibers, nothing is noted.
 */
#ifndef SLUICE_WORKERS_RUNTIME_ACTIVITY_H
#define SLUICE_WORKERS_RUNTIME_ACTIVITY_H

#include <stdint.h>

#include "schemas/messages/message_max.h"
#include "workers/runtime/spent.h"

enum { ACTIVITY_TOOL_MAX = MESSAGE_MAX(job_progress, tool), ACTIVITY_WHY_MAX = MESSAGE_MAX(job_progress, why) };

struct activity { /* all zero at first */
    uint64_t changes;
    uint32_t turn;                    /* from 1; 0: before the first */
    char tool[ACTIVITY_TOOL_MAX + 1]; /* the last one called; "": none yet */
    char why[ACTIVITY_WHY_MAX + 1];   /* why it does not get on; "": it does */
    struct spent spent;               /* its owner finishes it */
};

/* Of the current fiber; NULL: it has none. */
struct activity *activity_current(void);

void activity_turn(uint64_t turn);
void activity_tool(const char *name);
void activity_wait(const char *format, ...) __attribute__((format(printf, 1, 2)));
void activity_go_on(void); /* what it waited for is over */

#endif
