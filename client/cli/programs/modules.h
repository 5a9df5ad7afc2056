/* modules.h - commands whose verbs are modules of the Python package, which read their own options. */
#ifndef SLUICE_CLIENT_CLI_PROGRAMS_MODULES_H
#define SLUICE_CLIENT_CLI_PROGRAMS_MODULES_H

#include "client/cli/command.h"

/* The command's run: prints what the command itself answers (--help and its like), or runs the verb that is named. */
int modules_run(const struct invocation *in);
/* A verb's run: becomes the module, with the command's arguments but for the first `skip`. */
int module_exec(const char *module, const struct invocation *in, size_t skip);

#endif
