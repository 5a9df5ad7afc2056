/* name_distance.h - how unlike two names are, to tell a model the one it may have meant. Pure. */
#ifndef SLUICE_WORKERS_TOOLS_NAME_DISTANCE_H
#define SLUICE_WORKERS_TOOLS_NAME_DISTANCE_H

#include <stddef.h>

enum { NAME_DISTANCE_MAX = 64 }; /* what stands behind so many bytes of a name is not looked at */

/*
 * The bytes to put in, take out or change between the two, capitals aside; where one contains the
 * other, 1. 0: they are the same.
 */
size_t name_distance(const char *a, const char *b);

#endif
