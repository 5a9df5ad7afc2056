/*
 * dirtree_within.h - what comes along of a directory that is taken as a place (dirtree_take.h, dirtree_gather.h): not
 * what its patterns leave out, nor links that are absolute, or that go up beyond it, or up again behind a name. What
 * the patterns of one place leave out another may name.
 */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_WITHIN_H
#define SLUICE_WORKERS_FILES_DIRTREE_WITHIN_H

#include <limits.h>
#include <stdbool.h>

#include "workers/files/dirtree_take.h"

struct dirtree_within {
    const struct dirtree_place *place;
    char path[PATH_MAX]; /* of the directory in hand, from the place on: "." or "./a/b" */
    size_t len, depth;
};

struct dirtree_within dirtree_within_of(const struct dirtree_place *place);
/* Into a directory, by its name; false: the path is too long. And out again. */
bool dirtree_within_enter(struct dirtree_within *within, const char *name);
void dirtree_within_leave(struct dirtree_within *within, const char *name);

bool dirtree_within_excludes(const struct dirtree_within *within, const char *name);
/* Whether the link `name` in `dir`, which is the directory in hand, leads to nothing but what is taken. */
bool dirtree_within_leads(const struct dirtree_within *within, int dir, const char *name);

/*
 * Of several places those that no other takes along with it, the outer ones first: by number, in `ret_order`, which
 * has room for all; how many. `to` is where each comes to lie, or NULL: where it lies. One without a path, or without a
 * `to`, is none.
 */
size_t dirtree_places_choose(const struct dirtree_place *places, char *const *to, size_t count, size_t *ret_order);

#endif
