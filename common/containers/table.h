/*
 * table.h - a hash map from names to things. It owns its slots, neither names
 * nor things: a name's bytes must stay where they are while it is in the table
 * (they are part of the thing). Linear probing; removing leaves no tombstones.
 * `seed` makes the order of slots differ between starts. A table that may hold a
 * million is told how a thing's name is read, and keeps no names itself: 12 bytes
 * a slot instead of 28. Names are read only where hashes are equal.
 */
#ifndef SLUICE_COMMON_CONTAINERS_TABLE_H
#define SLUICE_COMMON_CONTAINERS_TABLE_H

#include "common/base/slice.h"

/* Aligned to 4, so that a slot has 12 bytes and not 16. */
typedef void *table_value __attribute__((aligned(4)));

struct table_slot {
    uint32_t hash;     /* 0: the slot is free */
    table_value value; /* beside it: a search waits for memory once */
};

enum { TABLE_MANY = 32 };

struct table { /* begins as zeroes, with `seed` and `name_of` where wanted */
    struct table_slot *slots;
    struct slice *names;    /* NULL where there is name_of */
    size_t count, capacity; /* capacity is 0 or a power of two */
    uint64_t seed;
    struct slice (*name_of)(const void *value);
};

/* The thing of this name, or NULL. */
void *table_find(const struct table *table, struct slice name);
/* The name must not be there yet; value is not NULL. False when out of memory. */
bool table_put(struct table *table, struct slice name, void *value);
/*
 * Puts up to TABLE_MANY things in, whose names name_of reads, and waits for memory once and not for each. Returns how
 * many it put in: fewer when out of memory, or where the next one's name is there already.
 */
size_t table_put_many(struct table *table, void *const *values, size_t count);
/* Makes room for so many at once, instead of by and by. False when out of memory. */
bool table_reserve(struct table *table, size_t count);
/* Removes the name and returns its thing, or NULL. */
void *table_take(struct table *table, struct slice name);
/* Each thing once, in no order: start with *at = 0; NULL at the end. No changes meanwhile. */
void *table_next(const struct table *table, size_t *at);
void table_finish(struct table *table);

#endif
