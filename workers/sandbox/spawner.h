/*
 * spawner.h - the process that clones sandboxes: small and single-threaded, because a clone
 * costs page tables and because PR_SET_PDEATHSIG follows the thread. It builds nothing itself:
 * each new pid 1 builds its own room and answers the worker over its own socket. What the
 * spawner keeps is an eye on their memory and processes.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_H

/* Serves `socket` (wire.h) until its other end is gone; then kills every sandbox and ends. */
_Noreturn void spawner_run(int socket, const char *scratch);

#endif
