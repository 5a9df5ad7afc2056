#include "common/containers/heap.h"

#include <stdlib.h>

static bool goes_before(const struct heap *heap, const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : heap->is_before && heap->is_before(a, b);
}

static void settle(struct heap *heap, size_t index, struct heap_node *node)
{
    heap->nodes[index] = node;
    node->place = (uint32_t)(index + 1);
}

static void rise(struct heap *heap, size_t index)
{
    struct heap_node *node = heap->nodes[index];
    while (index > 0 && goes_before(heap, node, heap->nodes[(index - 1) / 2])) {
        settle(heap, index, heap->nodes[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    settle(heap, index, node);
}

static void sink(struct heap *heap, size_t index)
{
    struct heap_node *node = heap->nodes[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child + 1 < heap->count && goes_before(heap, heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (child >= heap->count || !goes_before(heap, heap->nodes[child], node))
            break;
        settle(heap, index, heap->nodes[child]);
        index = child;
    }
    settle(heap, index, node);
}

static bool grow(struct heap *heap)
{
    size_t capacity = heap->capacity ? 2 * heap->capacity : 16;
    if (capacity > UINT32_MAX)
        return false;
    struct heap_node **nodes = realloc(heap->nodes, capacity * sizeof(struct heap_node *));
    if (!nodes)
        return false;
    heap->nodes = nodes;
    heap->capacity = capacity;
    return true;
}

bool heap_put(struct heap *heap, struct heap_node *node, int64_t key)
{
    if (!node->place) {
        if (heap->count == heap->capacity && !grow(heap))
            return false;
        settle(heap, heap->count++, node);
    }
    node->key = key;
    rise(heap, node->place - 1);
    sink(heap, node->place - 1);
    return true;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (!node->place)
        return;
    size_t index = node->place - 1;
    struct heap_node *last = heap->nodes[--heap->count];
    node->place = 0;
    if (last == node)
        return;
    settle(heap, index, last);
    rise(heap, index);
    sink(heap, last->place - 1);
}

void heap_shift(struct heap *heap, int64_t by)
{
    for (size_t i = 0; i < heap->count; i++)
        heap->nodes[i]->key += by;
}

struct heap_node *heap_peek(const struct heap *heap) { return heap->count ? heap->nodes[0] : NULL; }

bool heap_is_sound(const struct heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        if (heap->nodes[i]->place != i + 1)
            return false;
        if (i > 0 && goes_before(heap, heap->nodes[i], heap->nodes[(i - 1) / 2]))
            return false;
    }
    return true;
}

void heap_finish(struct heap *heap)
{
    free(heap->nodes);
    *heap = (struct heap){.is_before = heap->is_before};
}
