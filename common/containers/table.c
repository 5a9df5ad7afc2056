#include "common/containers/table.h"

#include <assert.h>
#include <stdlib.h>

/* Eight bytes at a time, then the finalizer of MurmurHash3, so that low bits depend on all of them. Never 0. */
static uint32_t hash_of(const struct table *table, struct slice name)
{
    uint64_t hash = table->seed ^ name.len, word = 0;
    size_t at = 0;
    for (; at + sizeof(word) <= name.len; at += sizeof(word)) {
        memcpy(&word, name.data + at, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    for (word = 0; at < name.len; at++)
        word = word << 8 | name.data[at];
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    return (uint32_t)hash ? (uint32_t)hash : 1;
}

static struct slice name_at(const struct table *table, size_t at)
{
    return table->names ? table->names[at] : table->name_of(table->slots[at].value);
}

/* Where the name is, or the free slot where it would go. */
static size_t locate(const struct table *table, struct slice name, uint32_t hash)
{
    size_t mask = table->capacity - 1, at = hash & mask;
    for (;; at = (at + 1) & mask) {
        const uint32_t there = table->slots[at].hash;
        if (!there || (there == hash && slice_equal(name_at(table, at), name)))
            return at;
    }
}

/* The first free slot for this hash. */
static size_t locate_free(const struct table *table, uint32_t hash)
{
    size_t mask = table->capacity - 1, at = hash & mask;
    while (table->slots[at].hash)
        at = (at + 1) & mask;
    return at;
}

void *table_find(const struct table *table, struct slice name)
{
    if (!table->count)
        return NULL;
    size_t at = locate(table, name, hash_of(table, name));
    return table->slots[at].hash ? table->slots[at].value : NULL;
}

static void free_slots(struct table *table)
{
    free(table->slots);
    free(table->names);
}

/* What `from` has at `old` is in the free slot `at` from now on. */
static void move(struct table *table, size_t at, const struct table *from, size_t old)
{
    table->slots[at] = from->slots[old];
    if (table->names)
        table->names[at] = from->names[old];
}

static bool resize(struct table *table, size_t capacity)
{
    struct table bigger = *table;
    bigger.capacity = capacity;
    bigger.slots = calloc(bigger.capacity, sizeof(*bigger.slots));
    bigger.names = table->name_of ? NULL : calloc(bigger.capacity, sizeof(*bigger.names));
    if (!bigger.slots || (!bigger.names && !table->name_of)) {
        free_slots(&bigger);
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i].hash)
            move(&bigger, locate_free(&bigger, table->slots[i].hash), table, i);
    free_slots(table);
    *table = bigger;
    return true;
}

static bool holds(size_t capacity, size_t count) { return count <= capacity / 4 * 3; }

bool table_reserve(struct table *table, size_t count)
{
    size_t capacity = table->capacity ? table->capacity : 16;
    while (!holds(capacity, count) && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    return holds(capacity, count) && (capacity == table->capacity || resize(table, capacity));
}

bool table_put(struct table *table, struct slice name, void *value)
{
    assert(value);
    if (!holds(table->capacity, table->count + 1) && !table_reserve(table, table->count + 1))
        return false;
    uint32_t hash = hash_of(table, name);
    size_t at = locate(table, name, hash);
    assert(!table->slots[at].hash);
    table->slots[at] = (struct table_slot){hash, value};
    if (table->names)
        table->names[at] = name;
    table->count++;
    return true;
}

size_t table_put_many(struct table *table, void *const *values, size_t count)
{
    uint32_t hashes[TABLE_MANY];
    assert(count <= TABLE_MANY && table->name_of);
    if (!holds(table->capacity, table->count + count) && !table_reserve(table, table->count + count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_of(table, table->name_of(values[i]));
        __builtin_prefetch(&table->slots[hashes[i] & (table->capacity - 1)], 1);
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = locate(table, table->name_of(values[i]), hashes[i]);
        if (table->slots[at].hash)
            return i;
        table->slots[at] = (struct table_slot){hashes[i], values[i]};
        table->count++;
    }
    return count;
}

/* Moves later members of a probe run into the hole, so that no run is cut. */
static void close_hole(struct table *table, size_t hole)
{
    size_t mask = table->capacity - 1;
    for (size_t at = (hole + 1) & mask; table->slots[at].hash; at = (at + 1) & mask) {
        size_t home = table->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            move(table, hole, table, at);
            hole = at;
        }
    }
    table->slots[hole] = (struct table_slot){0};
}

void *table_take(struct table *table, struct slice name)
{
    if (!table->count)
        return NULL;
    size_t at = locate(table, name, hash_of(table, name));
    if (!table->slots[at].hash)
        return NULL;
    void *value = table->slots[at].value;
    close_hole(table, at);
    table->count--;
    return value;
}

void *table_next(const struct table *table, size_t *at)
{
    while (*at < table->capacity) {
        const size_t here = (*at)++;
        if (table->slots[here].hash)
            return table->slots[here].value;
    }
    return NULL;
}

void table_finish(struct table *table)
{
    free_slots(table);
    *table = (struct table){.seed = table->seed, .name_of = table->name_of};
}
