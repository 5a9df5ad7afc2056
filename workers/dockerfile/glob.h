/*
 * dockerfile/glob.h - patterns of COPY, ADD and .dockerignore: *, ? and [a-z] within one name, \ before a character
 * that is meant, as Go's filepath.Match has them, and ** in a .dockerignore: any number of directories, or at the end
 * all there is. Pure; the time of a comparison goes by the product of the lengths, times that of the directories where
 * there is a **.
 */
#ifndef SLUICE_WORKERS_DOCKERFILE_GLOB_H
#define SLUICE_WORKERS_DOCKERFILE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/slice.h"

bool glob_is_pattern(const char *text);
/* Of the whole path, with **. */
bool glob_match(const char *pattern, const char *path);
/* Of one name: ** is *. */
bool glob_match_name(const char *pattern, const char *name);

enum { IGNORE_PATTERNS_MAX = 4096, IGNORE_NOTHING = -1 };

/* A .dockerignore: the last pattern that a path, or a directory it lies in, matches decides; "!" takes back. */
struct ignore {
    char **patterns;
    size_t count;
    bool has_exceptions;
};

/* -E2BIG: of more patterns than that, or of one that is longer than a path; or -ENOMEM. ignore_finish *ret in any
 * case. */
int ignore_parse(struct slice text, struct ignore *ret);
void ignore_finish(struct ignore *ignore);
/* Which pattern decides about `path`, when `above` decided about the directory that it lies in (IGNORE_NOTHING: none,
 * or the top). */
int ignore_decide(const struct ignore *ignore, const char *path, int above);
/* Whether it is left out by what decided. */
bool ignore_names(const struct ignore *ignore, int decided);

#endif
