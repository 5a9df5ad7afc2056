#include "workers/stages/build/build_match.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/dockerfile/glob.h"
#include "workers/files/dir_names.h"
#include "workers/files/dirtree.h"
#include "workers/files/open_below.h"

/* Takes the path. */
static int add_path(struct build_matching *matching, char *path)
{
    const bool is_full = matching->count == BUILD_MATCHES_MAX;
    char **more = is_full ? NULL : reallocarray(matching->paths, matching->count + 1, sizeof(*more));
    if (!more) {
        free(path);
        return is_full ? -E2BIG : -ENOMEM;
    }
    matching->paths = more;
    more[matching->count++] = path;
    return 0;
}

static int match_in(struct build_matching *matching, int dir, const char *path, const char *pattern);

/* What is no directory, and what may not be looked into, has no names. */
static int match_below(struct build_matching *matching, const char *path, const char *pattern)
{
    if (atomic_load(matching->stop))
        return -ECANCELED;
    AUTO_CLOSE int dir = open_in_root(matching->root, path, O_RDONLY | O_DIRECTORY, 0);
    if (dir >= 0)
        return match_in(matching, dir, path, pattern);
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES || errno == ENAMETOOLONG ? 0
                                                                                                             : -errno;
}

static int match_name(struct build_matching *matching, const char *dir, const char *name, const char *rest)
{
    AUTO_FREE char *path = dirtree_join_below(dir, name);
    if (!path)
        return -ENOMEM;
    return *rest ? match_below(matching, path, rest) : add_path(matching, take_ptr(&path));
}

/* Those in `dir`, which is at `path`, that the first name of `pattern` means, and of these what the rest means. */
static int match_in(struct build_matching *matching, int dir, const char *path, const char *pattern)
{
    const size_t len = strcspn(pattern, "/");
    struct dir_names names;
    AUTO_FREE char *first = strndup(pattern, len);
    if (!first)
        return -ENOMEM;
    int code = dir_names_read(dir, BUILD_NAMES_MAX - matching->names, &names);
    code = code == -E2BIG ? -EOVERFLOW : code;
    matching->names += names.count;
    for (size_t i = 0; i < names.count && code == 0; i++)
        if (atomic_load(matching->stop))
            code = -ECANCELED;
        else if (glob_match_name(first, names.each[i]))
            code = match_name(matching, path, names.each[i], pattern + len + (pattern[len] == '/'));
    dir_names_finish(&names);
    return code;
}

int build_match(struct build_matching *matching, const char *pattern)
{
    AUTO_FREE char *clean = dirtree_clean_path(pattern + strspn(pattern, "/"));
    build_matching_finish(matching);
    if (!clean)
        return -EINVAL;
    if (!glob_is_pattern(clean)) {
        AUTO_CLOSE int there = open_in_root(matching->root, clean, O_PATH, 0);
        return there < 0 ? -errno : add_path(matching, take_ptr(&clean));
    }
    int code = match_below(matching, "", clean);
    return code < 0 ? code : matching->count == 0 ? -ENOENT : 0;
}

void build_matching_finish(struct build_matching *matching)
{
    while (matching->count > 0)
        free(matching->paths[--matching->count]);
    free(take_ptr(&matching->paths));
}
