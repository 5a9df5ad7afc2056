/* nearest.h - of some names the one that is nearest to what somebody wrote: "did you mean". Pure. */
#ifndef SLUICE_COMMON_BASE_NEAREST_H
#define SLUICE_COMMON_BASE_NEAREST_H

#include <stddef.h>

#include "common/base/slice.h"

enum { NAME_DISTANCE_MAX = 64 }; /* what stands behind so many bytes of a name is not looked at */

/* {.wanted = what was written}: then offer each name there is, and ask. */
struct nearest {
    struct slice wanted;
    struct slice name; /* the nearest of those offered, the first of several; .data NULL: none was */
    size_t distance;
};

/*
 * The bytes to put in, take out or change between the two, capitals and '-' for '_' aside; where one
 * contains the other, 1. 0: they are the same.
 */
size_t name_distance(struct slice a, struct slice b);
void nearest_offer(struct nearest *nearest, struct slice name);
void nearest_offer_str(struct nearest *nearest, const char *name);
/* Near enough to be what was meant: a slip in every third byte, two at least in words of five and more. */
bool nearest_is_likely(const struct nearest *nearest);

#define NEAREST_TEXT_SIZE (NAME_DISTANCE_MAX + 32)
/* "; did you mean 'submit'?", or "" where none is likely. `before` stands in front of the name: "--". */
const char *nearest_text(const struct nearest *nearest, const char *before, char ret[static NEAREST_TEXT_SIZE]);

#endif
