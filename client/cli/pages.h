/* pages.h - the commands as pages: the overview of `sluice --help`, and docs/cli.md. */
#ifndef SLUICE_CLIENT_CLI_PAGES_H
#define SLUICE_CLIENT_CLI_PAGES_H

#include <stdio.h>

void help_overview(FILE *out);
void help_markdown(FILE *out);

#endif
