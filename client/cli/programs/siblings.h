/* siblings.h - sluice-broker, sluice-worker and the other programs, wherever this installation or build keeps them. */
#ifndef SLUICE_CLIENT_CLI_PROGRAMS_SIBLINGS_H
#define SLUICE_CLIENT_CLI_PROGRAMS_SIBLINGS_H

#include <stddef.h>

#include "client/cli/command.h"
#include "common/base/fail.h"

/*
 * Beside this program's own file; in ../<folder> of it, as in a build tree; else in PATH.
 * -ENOENT with a sentence that says where it looked.
 */
int sibling_find(const char *program, const char *folder, char *ret, size_t size, struct fail *fail);

/* Becomes that program, with the invocation's arguments; returns only when it cannot. */
int exec_sibling(const struct invocation *in, const char *program, const char *folder);

#endif
