/*
 * live_print.h - what is heard of a rollout while it works (docs/live.md), as a person reads it or an event a line, on
 * stdout. What is told anew is not printed again. On a terminal the model's text is printed as it is sampled; else each
 * message is, once it is whole.
 */
#ifndef SLUICE_CLIENT_CLI_PRINT_LIVE_PRINT_H
#define SLUICE_CLIENT_CLI_PRINT_LIVE_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_print { /* all zero but for the first two */
    bool json, streams;
    char stage[16]; /* of the part that is printed */
    long long attempt;
    size_t messages, turns, traces; /* of it, printed */
    long long ms;                   /* of its last phase */
    long long sampling;             /* whose text is being printed; 0: none's */
    bool is_line_open;              /* of that text */
    char *said;                     /* that text */
    bool is_ended;
};

/* One batch. False: it cannot be read. */
bool live_print_batch(struct live_print *print, const char *batch);
void live_print_finish(struct live_print *print);

#endif
