#include "workers/sandbox/container/masked_paths.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Each is a mount in each container. */
enum { SECRETS_MAX = 256, SEEN_MAX = 2000000 };

static const char directory = 'd', file = 'f';

static struct {
    char text[SECRETS_LIST_MAX]; /* 'd' or 'f', the path, NUL, the next */
    size_t len, count;
} found;

static struct {
    char *paths[SECRETS_KEPT_MAX]; /* real ones */
    size_t count;
} kept;

static bool is_secret(const FTSENT *entry)
{
    mode_t mode = entry->fts_statp->st_mode;
    if (entry->fts_info == FTS_F)
        return !(mode & S_IROTH);
    return entry->fts_info == FTS_DNR || (entry->fts_info == FTS_D && !(mode & S_IXOTH));
}

static int remember(const char *path, bool is_file, struct fail *fail)
{
    size_t size = strlen(path) + 1; /* a letter in place of the slash */
    if (found.count == SECRETS_MAX || size > SECRETS_LIST_MAX - found.len)
        return fail_set(fail, -ENOSPC,
                        "more than %d files that only root may read, or their names are longer "
                        "than %d bytes together: "
                        "run as an ordinary user",
                        SECRETS_MAX, SECRETS_LIST_MAX);
    memcpy(found.text + found.len, path, size);
    found.text[found.len] = is_file ? file : directory;
    found.len += size;
    found.count++;
    return 0;
}

/* ---- the worker's own ----------------------------------------------------------------- */

int masked_paths_keep(const char *path, struct fail *fail)
{
    char *real = realpath(path, NULL);
    if (!real)
        return 0;
    for (size_t i = 0; i < kept.count; i++)
        if (strcmp(kept.paths[i], real) == 0) {
            free(real);
            return 0;
        }
    if (kept.count == SECRETS_KEPT_MAX) {
        free(real);
        return fail_set(fail, -ENOSPC, "more than %d paths of the worker's own", SECRETS_KEPT_MAX);
    }
    kept.paths[kept.count++] = real;
    return 0;
}

static int remember_kept(struct fail *fail)
{
    struct stat it;
    int code = 0;
    for (size_t i = 0; i < kept.count && code == 0; i++)
        if (kept.paths[i][1] && lstat(kept.paths[i], &it) == 0)
            code = remember(kept.paths[i], !S_ISDIR(it.st_mode), fail);
    return code;
}

/* ---- what only root may read ------------------------------------------------------------ */

static int find_roots(struct fail *fail)
{
    char etc[] = "/etc", opt[] = "/opt", local[] = "/usr/local/etc";
    char *roots[] = {etc, opt, local, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return fail_set(fail, -errno, "cannot look for secrets: %s", strerror(errno));
    int code = 0;
    FTSENT *entry;
    for (size_t seen = 0; code == 0 && (entry = fts_read(walk)); seen++) {
        bool secret = is_secret(entry);
        if (seen == SEEN_MAX)
            code = fail_set(fail, -ENOSPC,
                            "more than %d files to look through for secrets: run as "
                            "an ordinary user",
                            SEEN_MAX);
        else if (secret)
            code = remember(entry->fts_path, entry->fts_info == FTS_F, fail);
        if (entry->fts_info == FTS_D && secret)
            fts_set(walk, entry, FTS_SKIP);
    }
    fts_close(walk);
    return code;
}

int masked_paths_find(bool is_root, struct fail *fail)
{
    found.len = found.count = 0;
    int code = remember_kept(fail);
    return code == 0 && is_root ? find_roots(fail) : code;
}

struct slice masked_paths_list(void) { return slice_of(found.text, found.len); }

bool masked_paths_take(struct slice list)
{
    if (list.len > SECRETS_LIST_MAX || (list.len > 0 && list.data[list.len - 1] != '\0'))
        return false;
    if (list.len > 0)
        memcpy(found.text, list.data, list.len);
    found.len = list.len;
    return true;
}

bool masked_paths_next(size_t *at, struct secret *ret)
{
    if (*at >= found.len)
        return false;
    *ret = (struct secret){.path = found.text + *at + 1, .is_dir = found.text[*at] == directory};
    *at += strlen(found.text + *at) + 1;
    return true;
}
