/*
 * starts.h - the processes that the worker asked pid 1 for. Each is under way until it has
 * executed its program or told why it cannot, and later it ends. Under way it has the user of
 * those inside already, who may stop it with a signal: so nobody waits for it, and who is late
 * is killed. Owner: pid 1.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_STARTS_H
#define SLUICE_WORKERS_SANDBOX_INIT_STARTS_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"

enum { STARTS_MAX = 256, STARTS_LIMIT_MS = 10000 };

struct start {
    pid_t pid;
    uint32_t id;      /* of the request */
    int report;       /* of launch(), owned; -1: it is executed */
    int64_t until_ms; /* it may be under way */
};

struct starts {
    size_t count;
    struct start each[STARTS_MAX];
};

/* 0 or -EAGAIN: no more can be added. */
int starts_check(const struct starts *starts, struct fail *fail);
/* There must be room. `report` -1: it was executed by somebody else. */
void starts_add(struct starts *starts, pid_t pid, uint32_t id, int report);
/* Or NULL. */
struct start *starts_find(struct starts *starts, pid_t pid);
/* The last takes its place. */
void starts_drop(struct starts *starts, struct start *start);

/* Reports to wait for, at most STARTS_MAX of them; their number. */
size_t starts_poll(const struct starts *starts, struct pollfd *ret);
/* Until the next is late; -1: none is under way. */
int starts_left_ms(const struct starts *starts);
/* 1: it is executed; 0: it is under way; else why it will not be (-ENOEXEC also when it was late),
 * and it is killed. */
int starts_look(struct start *start, struct fail *fail);

#endif
