#include "broker/net/flush_order.h"

void flush_order_init(struct flush_order *order)
{
    TAILQ_INIT(&order->next);
    TAILQ_INIT(&order->patient);
}

void flush_order_remove(struct flush_turn *turn)
{
    if (!turn->order)
        return;
    if (turn->due_ms)
        TAILQ_REMOVE(&turn->order->patient, turn, link);
    else
        TAILQ_REMOVE(&turn->order->next, turn, link);
    turn->order = NULL;
}

void flush_order_put(struct flush_order *order, struct flush_turn *turn, int64_t due_ms)
{
    if (turn->order && (due_ms || !turn->due_ms))
        return; /* it leaves as soon as that already */
    flush_order_remove(turn);
    turn->order = order;
    turn->due_ms = due_ms;
    if (due_ms)
        TAILQ_INSERT_TAIL(&order->patient, turn, link);
    else
        TAILQ_INSERT_TAIL(&order->next, turn, link);
}

struct flush_turn *flush_order_find(const struct flush_order *order, int64_t now_ms)
{
    struct flush_turn *next = TAILQ_FIRST(&order->next), *patient = TAILQ_FIRST(&order->patient);
    return next ? next : patient && patient->due_ms <= now_ms ? patient : NULL;
}

int64_t flush_order_due_ms(const struct flush_order *order)
{
    const struct flush_turn *first = TAILQ_FIRST(&order->patient);
    return first ? first->due_ms : INT64_MAX;
}
