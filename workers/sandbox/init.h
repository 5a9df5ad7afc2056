/*
 * init.h - pid 1 of a sandbox: builds its room, then starts processes, reaps them, opens files
 * and packs what was written, as the worker asks. It is this program's own code, never
 * executes anything itself, is not dumpable and ignores the signals of those inside.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_H
#define SLUICE_WORKERS_SANDBOX_INIT_H

#include "workers/sandbox/room.h"

/* In the clone. `control` is the wire to the worker, `births` tells the spawner of our /proc. */
_Noreturn void init_main(const struct room_plan *plan, int control, int births);

#endif
