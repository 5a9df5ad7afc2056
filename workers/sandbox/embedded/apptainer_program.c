#include "workers/sandbox/embedded/program.h"

PROGRAM_BYTES(apptainer_program, SLUICE_APPTAINER_INIT)
