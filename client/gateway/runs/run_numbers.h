/*
 * run_numbers.h - of names that were asked before: up to which number all rollouts have been had, so that the next one
 * need not ask the broker about each of them. What is forgotten costs such questions, and nothing else.
 */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_RUN_NUMBERS_H
#define SLUICE_CLIENT_GATEWAY_RUNS_RUN_NUMBERS_H

#include "common/containers/table.h"

enum { RUN_NUMBERS_MAX = 65536 /* names; all are forgotten then */ };

struct run_numbers {
    struct table bases;
};

/* The first number that may be free. */
unsigned run_numbers_first(const struct run_numbers *numbers, const char *base);
/* That number has been had: known where all before it have been. */
void run_numbers_pass(struct run_numbers *numbers, const char *base, unsigned number);
void run_numbers_finish(struct run_numbers *numbers);

#endif
