/* supervisor_program.h - the bytes of sluice-supervisor, which are part of the worker (sandbox/embedded/program.h). */
#ifndef SLUICE_WORKERS_HANDLERS_PROCESSES_SUPERVISOR_PROGRAM_H
#define SLUICE_WORKERS_HANDLERS_PROCESSES_SUPERVISOR_PROGRAM_H

#include "common/base/slice.h"

struct slice supervisor_program(void);

#endif
