/*
 * heap.h - a binary min-heap through the things it orders: timers by when
 * they are due, workers by how full they are, groups by their last number.
 * The heap owns its array, not its members.
 */
#ifndef SLUICE_COMMON_CONTAINERS_HEAP_H
#define SLUICE_COMMON_CONTAINERS_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Aligned to 4, so that a node has 12 bytes and not 16: there is one in each of a million jobs. */
typedef int64_t heap_key __attribute__((aligned(4)));

/* In a member; all zero: in no heap. */
struct heap_node {
    heap_key key;
    uint32_t place; /* index + 1 */
};

struct heap { /* begins as zeroes, with `is_before` where wanted */
    struct heap_node **nodes;
    size_t count, capacity;
    /* Of two with the same key, whether `a` goes before `b`; NULL: either may. */
    bool (*is_before)(const struct heap_node *a, const struct heap_node *b);
};

/* Puts a member in, or moves it if it is in already. False when out of memory. */
bool heap_put(struct heap *heap, struct heap_node *node, int64_t key);
/* Nothing happens if it is in no heap. */
void heap_remove(struct heap *heap, struct heap_node *node);
/* Every key grows by so much; the order stays. */
void heap_shift(struct heap *heap, int64_t by);
/* The member with the smallest key, or NULL. */
struct heap_node *heap_peek(const struct heap *heap);
/* Whether every place and every parent is right; for checks. */
bool heap_is_sound(const struct heap *heap);
void heap_finish(struct heap *heap);

#endif
