/* launch.h - starts a handler's process below its supervisor, with the descriptors and the environment of
 * docs/handlers.md. */
#ifndef SLUICE_WORKERS_HANDLERS_PROCESSES_LAUNCH_H
#define SLUICE_WORKERS_HANDLERS_PROCESSES_LAUNCH_H

#include "workers/handlers/processes/process.h"

/* All the caller's; descriptors do not block. */
struct launched {
    pid_t pid;  /* the supervisor's */
    int socket; /* the protocol's */
    int input;  /* of lines: what is said to it goes here, and `socket` has what it says; else -1 */
    int said;   /* what it writes beside it */
};

/* `program` is the supervisor's. 0 or negative errno with a sentence. */
int handler_launch(int program, const struct handler_spec *spec, const char *stage, struct launched *ret,
                   struct fail *fail);

#endif
