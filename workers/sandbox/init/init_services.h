/* init_services.h - what the worker asks the first process of a sandbox for. */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_INIT_SERVICES_H
#define SLUICE_WORKERS_SANDBOX_INIT_INIT_SERVICES_H

#include "workers/sandbox/init/init_inside.h"

/* What came in init->message. */
void init_serve(struct init *init);

#endif
