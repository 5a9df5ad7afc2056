#include "workers/sandbox/program.h"

PROGRAM_BYTES(spawner_program, SLUICE_SPAWNER)
