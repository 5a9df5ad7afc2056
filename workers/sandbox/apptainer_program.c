#include "workers/sandbox/program.h"

PROGRAM_BYTES(apptainer_program, SLUICE_APPTAINER_INIT)
