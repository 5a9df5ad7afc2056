/*
 * added.h - the added tokens of a tokenizer: names that are found in a text before anything else,
 * the longest of those that begin at one place.
 */
#ifndef SLUICE_WORKERS_TOKENIZER_ADDED_H
#define SLUICE_WORKERS_TOKENIZER_ADDED_H

#include "common/base/buffer.h"

struct added_node {          /* of a tree of bytes; the names end in it */
    uint32_t child, sibling; /* 0: none */
    uint32_t id;             /* UINT32_MAX: no name ends here */
    uint8_t byte;
    bool is_special;
};

struct added {                /* empty to begin with */
    struct added_node *nodes; /* the first is the root */
    size_t count, capacity;
};

/* False when the name is empty or there already, or there is no memory. */
bool added_put(struct added *added, struct slice name, uint32_t id, bool is_special);
void added_finish(struct added *added);

/* Bytes of the longest name at the start of the text, and its id; 0: none. */
size_t added_match(const struct added *added, struct slice text, bool specials, uint32_t *ret);

#endif
