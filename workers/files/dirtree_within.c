#include "workers/files/dirtree_within.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "workers/files/dirtree.h"

struct dirtree_within dirtree_within_of(const struct dirtree_place *place)
{
    return (struct dirtree_within){.place = place, .path = ".", .len = 1};
}

bool dirtree_within_enter(struct dirtree_within *within, const char *name)
{
    if (within->len + 1 + strlen(name) >= sizeof(within->path))
        return false;
    within->len += (size_t)sprintf(within->path + within->len, "/%s", name);
    within->depth++;
    return true;
}

void dirtree_within_leave(struct dirtree_within *within, const char *name)
{
    within->depth--;
    within->len -= strlen(name) + 1;
    within->path[within->len] = '\0';
}

/* By any part of its path that begins with a name, "./" at its front included. */
bool dirtree_within_excludes(const struct dirtree_within *within, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof(path), "%s/%s", within->path, name);
    for (size_t i = 0; i < within->place->exclude_count; i++)
        for (const char *at = path; at; at = strchr(at, '/'), at += at != NULL)
            if (fnmatch(within->place->exclude[i], at, 0) == 0)
                return true;
    return false;
}

/* Up at its beginning alone, and no further than the place: so it cannot lead out by way of other links, either. */
static bool leads_within(const char *target, size_t depth)
{
    bool has_name = false;
    if (target[0] == '/')
        return false;
    for (size_t len; *target; target += len + (target[len] == '/')) {
        len = strcspn(target, "/");
        const bool is_up = len == 2 && memcmp(target, "..", 2) == 0;
        if (is_up && (has_name || depth-- == 0))
            return false;
        has_name |= !is_up && len > 0 && !(len == 1 && *target == '.');
    }
    return true;
}

bool dirtree_within_leads(const struct dirtree_within *within, int dir, const char *name)
{
    char target[PATH_MAX];
    const ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);
    target[len < 0 ? 0 : len] = '\0';
    return len >= 0 && leads_within(target, within->depth);
}

/* ---- several places -------------------------------------------------------------------------------- */

/* A path in it, by itself or by a directory above. */
static bool leaves_out(const struct dirtree_place *place, const char *path)
{
    struct dirtree_within within = dirtree_within_of(place);
    const size_t above = strlen(place->path);
    char name[NAME_MAX + 1];
    for (path += above + (path[above] == '/'); *path; path += strspn(path, "/")) {
        const size_t len = strcspn(path, "/");
        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        if (dirtree_within_excludes(&within, name) || !dirtree_within_enter(&within, name))
            return true;
        path += len;
    }
    return false;
}

struct choice {
    const struct dirtree_place *places;
    char *const *to;
    size_t *order, chosen;
};

static const char *goes_to(const struct choice *choice, size_t i)
{
    return choice->to ? choice->to[i] : choice->places[i].path;
}

static bool comes_along(const struct choice *choice, size_t i)
{
    for (size_t k = 0; k < choice->chosen; k++) {
        const size_t other = choice->order[k];
        if (dirtree_is_at_or_in(choice->places[i].path, choice->places[other].path) &&
            dirtree_is_at_or_in(goes_to(choice, i), goes_to(choice, other)) &&
            !leaves_out(&choice->places[other], choice->places[i].path))
            return true;
    }
    return false;
}

/* By the lengths of where they come to lie; of those that are alike the first stays first. */
static void sort(const struct choice *choice, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const size_t one = choice->order[i];
        size_t at = i;
        for (; at > 0 && strlen(goes_to(choice, choice->order[at - 1])) > strlen(goes_to(choice, one)); at--)
            choice->order[at] = choice->order[at - 1];
        choice->order[at] = one;
    }
}

size_t dirtree_places_choose(const struct dirtree_place *places, char *const *to, size_t count, size_t *ret_order)
{
    struct choice choice = {places, to, ret_order, 0};
    size_t there = 0;
    for (size_t i = 0; i < count; i++)
        if (places[i].path && goes_to(&choice, i))
            ret_order[there++] = i;
    sort(&choice, there);
    for (size_t i = 0; i < there; i++) {
        const size_t one = ret_order[i]; /* those in front are chosen, or passed over */
        if (!comes_along(&choice, one))
            ret_order[choice.chosen++] = one;
    }
    return choice.chosen;
}
