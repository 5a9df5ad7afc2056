/*
 * line_budget.h - how many lines the log takes of events that may come by the million: LINES_AT_ONCE, and one more
 * every LINE_EVERY_MS. Those without one are counted, and told of by the next line. Pure.
 */
#ifndef SLUICE_BROKER_IO_LINE_BUDGET_H
#define SLUICE_BROKER_IO_LINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { LINES_AT_ONCE = 100, LINE_EVERY_MS = 10000 };

struct line_budget { /* all zero at first */
    int64_t counted_ms;
    uint64_t used, unsaid;
};

/* Whether there is a line for one more event; *ret_unsaid: how many had none since the last one. */
bool line_budget_take(struct line_budget *budget, int64_t now_ms, uint64_t *ret_unsaid);

#endif
