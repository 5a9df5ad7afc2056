#include "workers/images/list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/files/host_paths.h"
#include "workers/images/image_cache.h"

static int add(char **paths, size_t *count, char *path, struct fail *fail)
{
    if (*count == IMAGE_LIST_MAX) {
        free(path);
        return fail_set(fail, -EINVAL, "more than %d paths", IMAGE_LIST_MAX);
    }
    paths[(*count)++] = path;
    return 0;
}

static void finish(char **paths, size_t *count)
{
    while (*count > 0)
        free(paths[--*count]);
}

void image_list_finish(struct image_list *list)
{
    finish(list->listed, &list->listed_count);
    finish(list->own, &list->own_count);
    free(take_ptr(&list->cache));
}

/* ---- what lies where ------------------------------------------------------------------------ */

static bool is_own(const struct image_list *list, const char *path)
{
    for (size_t i = 0; i < list->own_count; i++)
        if (host_path_is_in(path, list->own[i]) || host_path_is_in(list->own[i], path))
            return true;
    return false;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool climbs(const char *rest)
{
    for (const char *at = rest; (at = strstr(at, "..")); at += 2)
        if ((at == rest || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

static bool is_missing(void) { return errno == ENOENT || errno == ENOTDIR; }

struct found {
    char *whole; /* the name, of real directories, with what is not there and ":NAME" behind it */
    char *path;  /* without ":NAME" */
    int error;   /* why it was not to be had */
};

static void found_finish(struct found *found)
{
    free(found->whole);
    free(found->path);
}

/* Of the longest beginning that is there. All NULL: there is none, or no memory. */
static struct found resolve(const char *name)
{
    AUTO_FREE char *there = strdup(name);
    char *real = NULL;
    for (char *end; there && !(real = realpath(there, NULL)) && is_missing(); *end = '\0') {
        char *slash = strrchr(there, '/'), *colon = strrchr(slash ? slash : there, ':');
        end = colon ? colon : slash;
        if (!end || end == there)
            break;
    }
    struct found found = {.error = real ? 0 : errno};
    AUTO_FREE char *start = real;
    const char *rest = start ? name + strlen(there) : "";
    if (!start || climbs(rest))
        return found;
    if (asprintf(&found.whole, "%s%s", start, rest) < 0)
        found.whole = NULL;
    found.path = found.whole ? strdup(*rest == ':' ? start : found.whole) : NULL;
    return found;
}

/* ---- the list ------------------------------------------------------------------------------- */

int image_list_check(const struct image_list *list, const char *option, const char *path, const char *real,
                     struct fail *fail)
{
    if (strcmp(real, "/") == 0 || host_path_is_inside(real))
        return fail_set(fail, -EINVAL, "%s %s: %s is the host's own, and not for tasks", option, path, real);
    for (size_t i = 0; i < list->own_count; i++)
        if (host_path_is_in(real, list->own[i]))
            return fail_set(fail, -EINVAL, "%s %s: it lies in %s, which is the worker's own", option, path,
                            list->own[i]);
    return 0;
}

bool image_list_is_own(const struct image_list *list, const char *real)
{
    return host_path_is_own(real) || is_own(list, real);
}

int image_list_add(struct image_list *list, const char *path, struct fail *fail)
{
    AUTO_FREE char *real = realpath(path, NULL);
    if (!real)
        return fail_set(fail, -EINVAL, "--images %s: %s", path, strerror(errno));
    int code = image_list_check(list, "--images", path, real, fail);
    return code < 0 ? code : add(list->listed, &list->listed_count, take_ptr(&real), fail);
}

int image_list_keep(struct image_list *list, const char *path, struct fail *fail)
{
    char *real = realpath(path, NULL);
    return real ? add(list->own, &list->own_count, real, fail) : 0;
}

int image_list_use_cache(struct image_list *list, const char *cache, struct fail *fail)
{
    list->cache = strdup(cache);
    return list->cache ? 0 : fail_memory(fail);
}

static bool is_offered(const struct image_list *list, const struct found *found)
{
    for (size_t i = 0; i < list->listed_count; i++)
        if (host_path_is_in(found->path, list->listed[i]))
            return true;
    return list->cache && image_cache_has(list->cache, found->whole);
}

/* It may be one that is offered, and it is its file system that fails, or who runs us has no right. */
static bool is_unreadable(const struct image_list *list, const struct found *found, const char *name)
{
    switch (found->error) {
    case 0:
    case ENOENT:
    case ENOTDIR: return false;
    case EACCES:
    case ELOOP:
    case ENAMETOOLONG:
        for (size_t i = 0; i < list->listed_count; i++)
            if (host_path_is_in(name, list->listed[i]))
                return true;
        return false;
    default: return true;
    }
}

int image_list_find(const struct image_list *list, const char *name, char **ret, struct fail *fail)
{
    __attribute__((cleanup(found_finish))) struct found found = resolve(name);
    if (found.path && (host_path_is_own(found.path) || is_own(list, found.path)))
        return fail_set(fail, -EINVAL,
                        "the image %.300s is, holds or lies in what is the host's or the worker's "
                        "own, which no "
                        "image may, whatever --images lists",
                        name);
    if (!found.path && is_unreadable(list, &found, name))
        return fail_set(fail, -ENOMEDIUM, "cannot read the image %.300s: %s", name, strerror(found.error));
    if (!found.path || !is_offered(list, &found))
        return fail_set(fail, -EINVAL,
                        "the image %.300s is not one that this worker offers: its operator lists directories of "
                        "images with --images DIR, or prepares one (sluice image prepare)",
                        name);
    *ret = take_ptr(&found.whole);
    return 0;
}
