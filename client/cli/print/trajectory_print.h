/* trajectory_print.h - a trajectory as a person reads it, part by part, on stdout; all text in it is tame. */
#ifndef SLUICE_CLIENT_CLI_PRINT_TRAJECTORY_PRINT_H
#define SLUICE_CLIENT_CLI_PRINT_TRAJECTORY_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "client/sluice.h"

/* Colours by what is said: the policy's own in green, tools in yellow, what it was told plain. */
struct paint {
    const char *sampled, *tool, *dim, *end;
};
/* Empty ones where there are no colours. */
const struct paint *paint_of(FILE *out);
/* Each line of the text behind a bar, so that what was said cannot pass for what we say. */
void print_quoted(const char *text, const char *colour, const struct paint *paint);

/* Outcome, reward and verdict, and the times. */
void print_end(const struct sluice_trajectory *t);
/* Its messages. */
void print_said(const struct sluice_trajectory *t);
/* What its sandbox used, and its traces; with `tokens` their ids. */
void print_used(const struct sluice_trajectory *t, bool tokens);

#endif
