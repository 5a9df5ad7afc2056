/*
 * flush_order.h - in which order the bundles of lanes leave. What cannot wait leaves with the next flush; what can
 * waits until it is due, and goes with what is said to the same worker before that. With many workers that is one
 * message less for each job.
 */
#ifndef SLUICE_BROKER_NET_FLUSH_ORDER_H
#define SLUICE_BROKER_NET_FLUSH_ORDER_H

#include <stdint.h>
#include <stddef.h>
#include <sys/queue.h>

/* Part of a lane; all zero, it is in no order. */
struct flush_turn {
    struct flush_order *order; /* that it is in, or NULL */
    int64_t due_ms;            /* when it is at the latest; 0: with the next flush */
    TAILQ_ENTRY(flush_turn) link;
};

struct flush_order {
    TAILQ_HEAD(, flush_turn) next, patient; /* with the next flush; and when they are due, in that order */
};

void flush_order_init(struct flush_order *order);
/* It leaves by then at the latest. Of times other than 0 none is before one that was given earlier. */
void flush_order_put(struct flush_order *order, struct flush_turn *turn, int64_t due_ms);
/* It is in none. */
void flush_order_remove(struct flush_turn *turn);
/* One that leaves now, or NULL. */
struct flush_turn *flush_order_find(const struct flush_order *order, int64_t now_ms);
/* When the first of those that wait is due; INT64_MAX: none does. */
int64_t flush_order_due_ms(const struct flush_order *order);

#endif
