/*
 * table.h - a hash map from names to things. It owns its slots, neither names
 * nor things: a name's bytes must stay where they are while it is in the table
 * (they are part of the thing). Linear probing; removing leaves no tombstones.
 * `seed` makes the order of slots differ between starts.
 */
#ifndef SLUICE_COMMON_CONTAINERS_TABLE_H
#define SLUICE_COMMON_CONTAINERS_TABLE_H

#include "common/base/slice.h"

struct table_slot {
    const uint8_t *name;
    uint32_t len, hash;
    void *value; /* NULL: the slot is free */
};

struct table {
    struct table_slot *slots;
    size_t count, capacity; /* capacity is 0 or a power of two */
    uint64_t seed;
};

/* The thing of this name, or NULL. */
void *table_find(const struct table *table, struct slice name);
/* The name must not be there yet; value is not NULL. False when out of memory. */
bool table_put(struct table *table, struct slice name, void *value);
/* Removes the name and returns its thing, or NULL. */
void *table_take(struct table *table, struct slice name);
/* Each thing once, in no order: start with *at = 0; NULL at the end. No changes meanwhile. */
void *table_next(const struct table *table, size_t *at);
void table_finish(struct table *table);

#endif
