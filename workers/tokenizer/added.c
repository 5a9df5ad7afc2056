#include "workers/tokenizer/added.h"

#include <stdlib.h>

static uint32_t node_add(struct added *added, uint8_t byte)
{
    if (added->count == added->capacity) {
        const size_t capacity = added->capacity ? added->capacity * 2 : 64;
        struct added_node *grown = reallocarray(added->nodes, capacity, sizeof(*grown));
        if (!grown)
            return 0;
        added->nodes = grown;
        added->capacity = capacity;
    }
    added->nodes[added->count] = (struct added_node){.id = UINT32_MAX, .byte = byte};
    return (uint32_t)added->count++;
}

static uint32_t child_of(const struct added *added, uint32_t node, uint8_t byte)
{
    uint32_t child = added->nodes[node].child;
    while (child && added->nodes[child].byte != byte)
        child = added->nodes[child].sibling;
    return child;
}

/* The child, made if need be; 0: no memory. */
static uint32_t child_make(struct added *added, uint32_t node, uint8_t byte)
{
    uint32_t child = child_of(added, node, byte);
    if (child || !(child = node_add(added, byte)))
        return child;
    added->nodes[child].sibling = added->nodes[node].child;
    added->nodes[node].child = child;
    return child;
}

bool added_put(struct added *added, struct slice name, uint32_t id, bool is_special)
{
    uint32_t node = 0;
    if (added->count == 0) {
        node_add(added, 0);
        if (added->count == 0)
            return false;
    }
    for (size_t i = 0; i < name.len; i++)
        if (!(node = child_make(added, node, name.data[i])))
            return false;
    if (node == 0 || added->nodes[node].id != UINT32_MAX)
        return false;
    added->nodes[node].id = id;
    added->nodes[node].is_special = is_special;
    return true;
}

void added_finish(struct added *added)
{
    free(added->nodes);
    *added = (struct added){0};
}

size_t added_match(const struct added *added, struct slice text, bool specials, uint32_t *ret)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; added->count > 0 && i < text.len; i++) {
        if (!(node = child_of(added, node, text.data[i])))
            break;
        const struct added_node *found = &added->nodes[node];
        if (found->id != UINT32_MAX && (specials || !found->is_special)) {
            longest = i + 1;
            *ret = found->id;
        }
    }
    return longest;
}
