#include "common/containers/table.h"

#include <assert.h>
#include <stdlib.h>

/* FNV-1a, then the finalizer of MurmurHash3, so that low bits depend on all bytes. */
static uint32_t hash_of(const struct table *table, struct slice name)
{
    uint64_t hash = 14695981039346656037u ^ table->seed;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ name.data[i]) * 1099511628211u;
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    return (uint32_t)hash;
}

/* Where the name is, or the free slot where it would go. */
static size_t locate(const struct table *table, struct slice name, uint32_t hash)
{
    size_t mask = table->capacity - 1, at = hash & mask;
    for (;; at = (at + 1) & mask) {
        const struct table_slot *slot = &table->slots[at];
        if (!slot->value || (slot->hash == hash && slice_equal(slice_of(slot->name, slot->len), name)))
            return at;
    }
}

void *table_find(const struct table *table, struct slice name)
{
    if (!table->count)
        return NULL;
    return table->slots[locate(table, name, hash_of(table, name))].value;
}

static bool grow(struct table *table)
{
    struct table old = *table;
    size_t capacity = old.capacity ? 2 * old.capacity : 16;
    struct table_slot *slots = calloc(capacity, sizeof(*slots));
    if (!slots)
        return false;
    table->slots = slots;
    table->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct table_slot *slot = &old.slots[i];
        if (slot->value)
            slots[locate(table, slice_of(slot->name, slot->len), slot->hash)] = *slot;
    }
    free(old.slots);
    return true;
}

bool table_put(struct table *table, struct slice name, void *value)
{
    assert(value);
    if (4 * (table->count + 1) > 3 * table->capacity && !grow(table))
        return false;
    uint32_t hash = hash_of(table, name);
    struct table_slot *slot = &table->slots[locate(table, name, hash)];
    assert(!slot->value);
    *slot = (struct table_slot){name.data, (uint32_t)name.len, hash, value};
    table->count++;
    return true;
}

/* Moves later members of a probe run into the hole, so that no run is cut. */
static void close_hole(struct table *table, size_t hole)
{
    size_t mask = table->capacity - 1;
    for (size_t at = (hole + 1) & mask; table->slots[at].value; at = (at + 1) & mask) {
        size_t home = table->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
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
    void *value = table->slots[at].value;
    if (value) {
        close_hole(table, at);
        table->count--;
    }
    return value;
}

void *table_next(const struct table *table, size_t *at)
{
    while (*at < table->capacity) {
        void *value = table->slots[(*at)++].value;
        if (value)
            return value;
    }
    return NULL;
}

void table_finish(struct table *table)
{
    free(table->slots);
    *table = (struct table){.seed = table->seed};
}
