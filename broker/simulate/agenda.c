#include "broker/simulate/agenda.h"

#include <stdlib.h>

enum { SIDES = 4 }; /* four items are a line of the processor's cache */

static bool grow(struct agenda *agenda)
{
    size_t capacity = agenda->capacity ? 2 * agenda->capacity : 16;
    struct due *more = realloc(agenda->items, capacity * sizeof(*more));
    if (!more)
        return false;
    agenda->items = more;
    agenda->capacity = capacity;
    return true;
}

bool agenda_push(struct agenda *agenda, struct due due)
{
    if (agenda->count == agenda->capacity && !grow(agenda))
        return false;
    struct due *items = agenda->items;
    size_t at = agenda->count++;
    for (size_t up; at > 0 && items[up = (at - 1) / SIDES].at > due.at; at = up)
        items[at] = items[up];
    items[at] = due;
    return true;
}

/* Where the earliest is of those below `at`; `count` if there is none. */
static size_t first_below(const struct due *items, size_t count, size_t at)
{
    size_t first = SIDES * at + 1, end = first + SIDES < count ? first + SIDES : count;
    for (size_t i = first + 1; i < end; i++)
        if (items[i].at < items[first].at)
            first = i;
    return first < count ? first : count;
}

/* There, or below, in the place of what was there. */
static void sink(struct due *items, size_t count, size_t at, struct due due)
{
    for (size_t down; (down = first_below(items, count, at)) < count; at = down) {
        if (items[down].at >= due.at)
            break;
        items[at] = items[down];
    }
    items[at] = due;
}

struct due agenda_pop(struct agenda *agenda)
{
    struct due *items = agenda->items, first = items[0], last = items[--agenda->count];
    sink(items, agenda->count, 0, last);
    return first;
}

bool agenda_remove(struct agenda *agenda, uint32_t what, uint32_t kind, struct due *ret)
{
    struct due *items = agenda->items;
    size_t at = 0;
    while (at < agenda->count && (items[at].what != what || items[at].kind != kind))
        at++;
    if (at == agenda->count)
        return false;
    *ret = items[at];
    const struct due last = items[--agenda->count];
    for (size_t up; at > 0 && items[up = (at - 1) / SIDES].at > last.at; at = up)
        items[at] = items[up];
    if (at < agenda->count)
        sink(items, agenda->count, at, last);
    return true;
}

void agenda_finish(struct agenda *agenda)
{
    free(agenda->items);
    *agenda = (struct agenda){0};
}
