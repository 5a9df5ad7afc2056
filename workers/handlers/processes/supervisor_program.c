#include "workers/handlers/processes/supervisor_program.h"

#include "workers/sandbox/embedded/program.h"

PROGRAM_BYTES(supervisor_program, SLUICE_SUPERVISOR)
