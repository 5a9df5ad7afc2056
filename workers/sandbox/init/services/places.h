/*
 * places.h - what pid 1 does so that something of the worker's can lie at a path, whatever those inside left there and
 * on the way to it: what is not a directory, and leads to none, is replaced by one. Paths are absolute and mean what
 * they mean inside. Those inside may be at work meanwhile: what they undo at once is refused with an errno.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SERVICES_PLACES_H
#define SLUICE_WORKERS_SANDBOX_INIT_SERVICES_PLACES_H

#include <sys/types.h>

#include "common/base/fail.h"
#include "workers/sandbox/proto/wire.h"

/* 0 or negative errno. `mode` is of the directory, where one is wanted. */
int place_prepare(const char *path, enum wire_place wanted, mode_t mode, struct fail *fail);

#endif
