/*
 * driver.h - a program of ours in Python (inside.h) that is at work in a sandbox, and the wire to it: a socket pair of
 * which it alone has the other end, and a file without a name for what it and its children write.
 * What comes back was in the agent's hands: frames are bounded, and a broken one ends the driver.
 */
#ifndef SLUICE_WORKERS_INSIDE_DRIVER_H
#define SLUICE_WORKERS_INSIDE_DRIVER_H

#include <jansson.h>

#include "workers/sandbox/output.h"
#include "workers/sandbox/sandbox.h"

enum { DRIVER_FRAME_MAX = 65536 };

/* A program as bytes. */
struct program {
    const char *name;
    const unsigned char *bytes;
    const size_t *len;
};

struct driver {
    struct sandbox *sandbox; /* must outlive it */
    pid_t pid;               /* 0: none is running */
    int socket, output;
    uint64_t seen; /* of the output */
    uint8_t frame[4 + DRIVER_FRAME_MAX];
    size_t frame_len;
    bool is_closed; /* by its end */
};

/* A driver without a process. */
void driver_init(struct driver *driver, struct sandbox *sandbox);
/* Lets go of the process without waiting: it reads the end of its socket and ends. Idempotent. */
void driver_finish(struct driver *driver);

/* Puts a program among the files that the sandbox can only read. 0 or negative errno. */
int driver_install(const struct sandbox *sandbox, const struct program *program, struct fail *fail);
/* Makes socket and output; the driver's end of the socket in *ret, the caller's. -ENOEXEC: the agent has spoiled
 * /run/sluice/out; other negative errno. */
int driver_make_ends(struct driver *driver, int *ret, struct fail *fail);
/*
 * Installs and starts it: python3 NAME [ARGUMENT] CHANNEL. 0; -ENOEXEC: there is no python3; other negative errno.
 * `argument` may be NULL; `its_end` stays the caller's.
 */
int driver_execute(struct driver *driver, const struct program *program, const char *argument, int its_end,
                   struct fail *fail);
/* Kills it and its descendants and awaits its end. 0 or negative errno. */
int driver_kill(struct driver *driver, struct fail *fail);

/* False when it does not take the message: it ended, or is stuck. */
bool driver_send(struct driver *driver, const json_t *message);

/* What came of it by until_ms: */
enum driver_news {
    DRIVER_SILENT,
    DRIVER_SAID,  /* *ret is its message, the caller's */
    DRIVER_ENDED, /* *status as sandbox_wait */
    DRIVER_BROKEN /* it says what nobody understands */
};
/* One of them, or negative errno. */
int driver_await(struct driver *driver, int64_t until_ms, json_t **ret, int *status, struct fail *fail);

/* What was written since the last time; the memory of it is given back. */
void driver_collect(struct driver *driver, struct output *output);

#endif
