#include "workers/files/dirtree_within.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
