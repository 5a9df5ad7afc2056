/* verbs.h - the first argument, where all else depends on it (cmdline.h: struct cmdline_verb). */
#ifndef SLUICE_COMMON_CMDLINE_VERBS_H
#define SLUICE_COMMON_CMDLINE_VERBS_H

#include "common/cmdline/cmdline.h"

/* The verb of that name. NULL with a sentence that says which there are, and the nearest; so for a NULL name, too. */
const struct cmdline_verb *cmdline_verb(const struct cmdline *line, const char *name, struct fail *fail);
/* The arguments as --help shows them: of verbs, "add HOST | list". */
const char *cmdline_arguments(const struct cmdline *line, char ret[CMDLINE_ARGUMENTS_SIZE]);

#endif
