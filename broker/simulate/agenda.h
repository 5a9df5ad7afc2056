/*
 * agenda.h - what is due when, the earliest first: a heap that grows. What it names and what
 * `kind` means is its owner's affair; `at` need not be a time.
 */
#ifndef SLUICE_BROKER_SIMULATE_AGENDA_H
#define SLUICE_BROKER_SIMULATE_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due {
    double at;
    uint32_t what, kind;
};

struct agenda {
    struct due *items; /* items[0] is the first, while there is one */
    size_t count, capacity;
};

/* False when out of memory. */
bool agenda_push(struct agenda *agenda, struct due due);
/* There must be one. */
struct due agenda_pop(struct agenda *agenda);
/* Takes out what this names; false if it is not there. */
bool agenda_remove(struct agenda *agenda, uint32_t what, uint32_t kind, struct due *ret);
void agenda_finish(struct agenda *agenda);

#endif
