#include "client/gateway/runs/run_numbers.h"

#include <stdlib.h>

struct passed {
    unsigned first;
    char base[];
};

unsigned run_numbers_first(const struct run_numbers *numbers, const char *base)
{
    const struct passed *passed = table_find(&numbers->bases, slice_from_str(base));
    return passed ? passed->first : 0;
}

void run_numbers_pass(struct run_numbers *numbers, const char *base, unsigned number)
{
    struct passed *passed = table_find(&numbers->bases, slice_from_str(base));
    if (passed) {
        passed->first += passed->first == number;
        return;
    }
    if (number > 0)
        return;
    if (numbers->bases.count == RUN_NUMBERS_MAX)
        run_numbers_finish(numbers);
    const size_t size = strlen(base) + 1;
    passed = malloc(sizeof(*passed) + size);
    if (!passed)
        return;
    passed->first = 1;
    memcpy(passed->base, base, size);
    if (!table_put(&numbers->bases, slice_from_str(passed->base), passed))
        free(passed);
}

void run_numbers_finish(struct run_numbers *numbers)
{
    size_t at = 0;
    for (struct passed *passed; (passed = table_next(&numbers->bases, &at));)
        free(passed);
    table_finish(&numbers->bases);
    numbers->bases = (struct table){0};
}
