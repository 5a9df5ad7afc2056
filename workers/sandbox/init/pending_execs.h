/*
 * pending_execs.h - the processes that the worker asked pid 1 for. Each is under way until it has
 * executed its program or told why it cannot, and later it ends. Under way it has the user of
 * those inside already, who may stop it with a signal: so nobody waits for it, and who is late
 * is killed. Owner: pid 1.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_PENDING_EXECS_H
#define SLUICE_WORKERS_SANDBOX_INIT_PENDING_EXECS_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"

enum { EXECS_MAX = 256, EXECS_LIMIT_MS = 10000 };

struct pending_exec {
    pid_t pid;
    uint32_t id;      /* of the request */
    int report;       /* of launch(), owned; -1: it is executed */
    int64_t until_ms; /* it may be under way */
};

struct pending_execs {
    size_t count;
    struct pending_exec each[EXECS_MAX];
};

/* 0 or -EAGAIN: no more can be added. */
int execs_check(const struct pending_execs *execs, struct fail *fail);
/* There must be room. `report` -1: it was executed by somebody else. */
void execs_add(struct pending_execs *execs, pid_t pid, uint32_t id, int report);
/* Or NULL. */
struct pending_exec *execs_find(struct pending_execs *execs, pid_t pid);
/* The last takes its place. */
void execs_drop(struct pending_execs *execs, struct pending_exec *start);

/* Reports to wait for, at most STARTS_MAX of them; their number. */
size_t execs_poll(const struct pending_execs *execs, struct pollfd *ret);
/* Until the next is late; -1: none is under way. */
int execs_left_ms(const struct pending_execs *execs);
/* 1: it is executed; 0: it is under way; else why it will not be (-ENOEXEC also when it was late),
 * and it is killed. */
int execs_look(struct pending_exec *start, struct fail *fail);

#endif
