#include "broker/io/line_budget.h"

bool line_budget_take(struct line_budget *budget, int64_t now_ms, uint64_t *ret_unsaid)
{
    if (budget->used == 0)
        budget->counted_ms = now_ms;
    const uint64_t back = (uint64_t)(now_ms - budget->counted_ms) / LINE_EVERY_MS;
    budget->counted_ms += (int64_t)back * LINE_EVERY_MS;
    budget->used = back < budget->used ? budget->used - back : 0;
    if (budget->used >= LINES_AT_ONCE) {
        budget->unsaid++;
        return false;
    }
    budget->used++;
    *ret_unsaid = budget->unsaid;
    budget->unsaid = 0;
    return true;
}
