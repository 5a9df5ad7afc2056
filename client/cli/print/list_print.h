/* list_print.h - rollouts, as the broker lists them (docs/operations.md), in tables. */
#ifndef SLUICE_CLIENT_CLI_PRINT_LIST_PRINT_H
#define SLUICE_CLIENT_CLI_PRINT_LIST_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* `rollouts`: an array of those that have ended, or of those that have not. */
void list_print_rollouts(const json_t *rollouts, bool ended, FILE *out);
/* A row for each group that has any of them: how many, what they are at or how they ended,
 * the mean of their rewards. */
void list_print_groups(const json_t *rollouts, bool ended, FILE *out);
/* The same as JSON, an object a line. */
void list_print_json(const json_t *rollouts, FILE *out);

#endif
