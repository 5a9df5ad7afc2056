/* status_print.h - `sluice status`: status.c asks and decides, status_print.c shows. */
#ifndef SLUICE_CLIENT_CLI_PRINT_STATUS_PRINT_H
#define SLUICE_CLIENT_CLI_PRINT_STATUS_PRINT_H

#include <jansson.h>

#include "client/cli/command.h"

/* Health first, then tables, then advice. What another version of the broker does not tell is left out. */
void status_print(const struct sluice_client *client, const json_t *status);

#endif
