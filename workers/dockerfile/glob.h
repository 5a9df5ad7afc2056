/*
 * dockerfile/glob.h - patterns of COPY, ADD and .dockerignore, as Go's filepath.Match has them: *, ? and [a-z] within one name,
 * \ before a character that is meant, and ** for any number of directories. Pure.
 */
#ifndef SLUICE_WORKERS_DOCKERFILE_GLOB_H
#define SLUICE_WORKERS_DOCKERFILE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/slice.h"

bool glob_is_pattern(const char *text);
/* Of the whole path. */
bool glob_match(const char *pattern, const char *path);

enum { IGNORE_PATTERNS_MAX = 4096 };

/* A .dockerignore: the last pattern that a path, or a directory it lies in, matches decides; "!" takes back. */
struct ignore {
    char **patterns;
    size_t count;
    bool has_exceptions;
};

/* False when out of memory, or of more patterns than that. ignore_finish *ret in any case. */
bool ignore_parse(struct slice text, struct ignore *ret);
void ignore_finish(struct ignore *ignore);
bool ignore_holds(const struct ignore *ignore, const char *path);

#endif
