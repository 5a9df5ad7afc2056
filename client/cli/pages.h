/* pages.h - the commands as pages: the overview of `sluice --help`, docs/cli.md, sluice(1), and for shells. */
#ifndef SLUICE_CLIENT_CLI_PAGES_H
#define SLUICE_CLIENT_CLI_PAGES_H

#include <stdio.h>

void help_overview(FILE *out);
void help_markdown(FILE *out);
void help_manual(FILE *out);
/* A line for each command, as manual.h says it of options. */
void help_completion(FILE *out);

#endif
