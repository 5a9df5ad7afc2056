/*
 * spawner.h - the process that clones sandboxes: single-threaded, because PR_SET_PDEATHSIG follows the thread, and a
 * program of its own, linked statically (spawner_main.c), because each clone costs page tables and pages of all that is
 * mapped and written to. It builds nothing itself: each new pid 1 builds its own container and answers the worker over
 * its own socket. What the spawner keeps is an eye on their memory and processes.
 *
 * It lives in a user, mount and pid namespace of its own (namespaces.h): those of the sandboxes are
 * children of its own, it has no right on the host, and with it they all end.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_H

#include "workers/sandbox/container/spawner_setup.h"

/* Says on `socket` (wire.h) that it is ready, or why not; serves that until its other end is gone; then kills every
 * sandbox and ends. */
_Noreturn void spawner_run(int socket, const struct spawner_setup *setup);

#endif
