/* pages.h - the commands as pages: the overview of `sluice --help`, docs/cli.md, sluice(1), and for shells. */
#ifndef SLUICE_CLIENT_CLI_PAGES_H
#define SLUICE_CLIENT_CLI_PAGES_H

#include <stdio.h>

#include "client/cli/command.h"

void help_overview(const struct command *const *commands, size_t count, FILE *out);
void help_markdown(const struct command *const *commands, size_t count, FILE *out);
void help_manual(const struct command *const *commands, size_t count, FILE *out);
/* A line for each command, as manual.h says it of options. */
void help_completion(const struct command *const *commands, size_t count, FILE *out);

#endif
