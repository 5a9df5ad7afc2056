#include "workers/sandbox/embedded/program.h"

PROGRAM_BYTES(spawner_program, SLUICE_SPAWNER)
