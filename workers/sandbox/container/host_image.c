/*
 * The image "host": the system directories of this machine, read-only, and nothing else of it. Some of its names are
 * links
 * (/bin), and those would lie in what agents write to. So every name is as the host has it over whatever layers say, by
 * a layer above them all, and has a mount on it, which keeps those inside from renaming or removing it, links too.
 */
#include "workers/sandbox/container/host_image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/landlock.h"
#include "workers/sandbox/container/mounts.h"
#include "workers/sandbox/container/masked_paths.h"
#include "workers/files/dirtree.h"

static const char *const system_dirs[] = {
#define SYSTEM_NAME(name) name,
#include "workers/sandbox/container/system_names.def"
#undef SYSTEM_NAME
};
enum { SYSTEM_DIRS = sizeof(system_dirs) / sizeof(*system_dirs) };

bool host_image_is(const char *image) { return strcmp(image, "host") == 0; }

const char *host_image_name(size_t i) { return i < SYSTEM_DIRS ? system_dirs[i] : NULL; }

bool host_image_shows(const char *path)
{
    for (size_t i = 0; i < SYSTEM_DIRS; i++)
        if (dirtree_is_at_or_in(path, system_dirs[i]))
            return true;
    return false;
}

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "the host's /%s: %s", what, strerror(errno));
}

/* The file type of /NAME of the host (S_IFDIR, S_IFLNK ...), 0 when there is none. */
static mode_t host_type(const char *name)
{
    char path[32];
    struct stat it;
    snprintf(path, sizeof(path), "/%s", name);
    return lstat(path, &it) == 0 ? it.st_mode & S_IFMT : 0;
}

static int copy_symlink(int dir, const char *name)
{
    char path[32], to[PATH_MAX];
    snprintf(path, sizeof(path), "/%s", name);
    ssize_t len = readlink(path, to, sizeof(to) - 1);
    if (len < 0)
        return -1;
    to[len] = '\0';
    return symlinkat(to, dir, name);
}

/* What the host does not have, no layer has, but where every root has it. */
static int hide(int top, int skeleton, const char *name)
{
    return faccessat(skeleton, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : dirtree_white_out(top, name);
}

int host_image_prepare(int top, int skeleton, struct fail *fail)
{
    for (size_t i = 0; i < SYSTEM_DIRS; i++) {
        const char *name = system_dirs[i];
        mode_t type = host_type(name);
        int made = S_ISDIR(type)   ? mkdirat(top, name, 0755)
                   : S_ISLNK(type) ? copy_symlink(top, name)
                                   : hide(top, skeleton, name);
        if (made < 0)
            return refuse(fail, name);
    }
    return 0;
}

/* ---- with mounts ---------------------------------------------------------------------- */

/* Neither gone or covered already, nor replaced by a layer, which has what it has from inside. */
static bool is_what_it_was(int root, const char *path, bool is_dir)
{
    struct stat it;
    AUTO_CLOSE int there = open_in_root(root, path, O_PATH | O_NOFOLLOW, 0);
    return there >= 0 && fstat(there, &it) == 0 &&
           (is_dir ? S_ISDIR(it.st_mode) : S_ISREG(it.st_mode) || S_ISSOCK(it.st_mode));
}

/* Covers in `root` those that lie below `dir`, a real path, of which `root` is made. */
static int mask_paths(int base, int root, const char *dir, struct fail *fail)
{
    struct secret secret;
    size_t len = strlen(dir + 1);
    for (size_t at = 0; masked_paths_next(&at, &secret);) {
        if (strncmp(secret.path, dir + 1, len) != 0 || (len > 0 && secret.path[len] != '/'))
            continue;
        const char *path = secret.path + len + (len > 0);
        if (is_what_it_was(root, path, secret.is_dir) &&
            container_attach_clone(base, secret.is_dir ? "empty" : "nothing", MOUNT_ATTR_RDONLY, root, path) < 0)
            return refuse(fail, secret.path);
    }
    return 0;
}

int image_mask_paths(const char *image, int base, int root, struct fail *fail)
{
    return mask_paths(base, root, image, fail);
}

static const uint64_t attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

/* Something is mounted in the directory `host`: as far as can be told, yes. */
static bool has_mounts_in(const char *host)
{
    const size_t len = strlen(host);
    char line[PATH_MAX + 512], at[PATH_MAX];
    AUTO_FCLOSE FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts)
        return true;
    while (fgets(line, sizeof(line), mounts))
        if (sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 && strncmp(at, host, len) == 0 && at[len] == '/')
            return true;
    return false;
}

/* Below all of it. */
static const char *what_is_below(const char *name)
{
    return strcmp(name, "opt") == 0 ? "harness_skeleton/opt" : "empty";
}

/*
 * As an overlay of it and of nothing, or as good as nothing, whose files are not the host's own: who locks one, or asks
 * to be told of what is opened there, has to do with sandboxes alone. That shows nothing of what is mounted in the
 * directory, so one with mounts in it is shown itself.
 */
static bool mount_apart(int base, const char *host, const char *below, const char *place)
{
    char options[96];
    snprintf(options, sizeof(options), "lowerdir=%s:%s,userxattr", host, below);
    return !has_mounts_in(host) && fchdir(base) == 0 &&
           mount("overlay", place, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) == 0;
}

static int mount_one(int base, int tree, const char *name)
{
    char host[32], place[48];
    mode_t type = host_type(name);
    snprintf(host, sizeof(host), "/%s", name);
    snprintf(place, sizeof(place), "tree/%s", name);
    if (S_ISLNK(type))
        return copy_symlink(tree, name);
    if (!S_ISDIR(type))
        return 0;
    if (mkdirat(tree, name, 0755) < 0)
        return -1;
    return mount_apart(base, host, what_is_below(name), place)
               ? 0
               : container_attach_clone(AT_FDCWD, host, attributes, tree, name);
}

int host_image_mount(int base, struct fail *fail)
{
    AUTO_CLOSE int tree = openat(base, "tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < SYSTEM_DIRS; i++)
        if (mount_one(base, tree, system_dirs[i]) < 0)
            return refuse(fail, system_dirs[i]);
    return mask_paths(base, tree, "/", fail);
}

/* A directory or a link of `from` on what has the same name in `root`. The attributes once more, for what the host has
 * mounted there since. */
static int pin(int from, const char *name, int root)
{
    struct mount_attr attr = {.attr_set = attributes};
    AUTO_CLOSE int tree = open_tree(from, name,
                                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
    if (tree < 0)
        return errno == ENOENT ? 0 : -1;
    AUTO_CLOSE int target = openat(root, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (target < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return -1;
    return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int host_image_attach(int base, int root, struct fail *fail)
{
    AUTO_CLOSE int tree = openat(base, "tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < SYSTEM_DIRS; i++)
        if (pin(tree, system_dirs[i], root) < 0)
            return refuse(fail, system_dirs[i]);
    return 0;
}

/* What is neither there nor in a layer may be made by those inside: nothing was in its place. */
int system_names_seal(int root, struct fail *fail)
{
    for (size_t i = 0; i < SYSTEM_DIRS; i++)
        if (pin(root, system_dirs[i], root) < 0)
            return refuse(fail, system_dirs[i]);
    return 0;
}

/* ---- without mounts ------------------------------------------------------------------- */

/* Whether it is one, or how many lie below it; *has_dir: one of those is a directory. */
static bool is_kept_secret(const char *path, size_t *below, bool *has_dir)
{
    size_t len = strlen(path + 1);
    *below = 0;
    *has_dir = false;
    struct secret secret;
    for (size_t at = 0; masked_paths_next(&at, &secret);) {
        if (strncmp(secret.path, path + 1, len) != 0)
            continue;
        if (secret.path[len] == '\0')
            return true;
        if (secret.path[len] == '/') {
            (*below)++;
            *has_dir |= secret.is_dir;
        }
    }
    return false;
}

static int allow_tree(int rules, const char *path, struct fail *fail);

static int allow_entries(int rules, const char *path, struct fail *fail)
{
    const struct dirent *entry;
    AUTO_DIR stream = opendir(path);
    int code = stream ? 0 : -errno;
    while (stream && (code = dir_stream_next(stream, &entry)) > 0) {
        char name[PATH_MAX];
        if (snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) < PATH_MAX &&
            (code = allow_tree(rules, name, fail)) < 0)
            return code;
    }
    return code < 0 ? fail_set(fail, code, "%s: %s", path, strerror(-code)) : 0;
}

/* A rule holds for all below it: where secrets are, each of their neighbours needs its own. */
static int allow_tree(int rules, const char *path, struct fail *fail)
{
    struct stat it;
    size_t below;
    bool has_dir;
    if (is_kept_secret(path, &below, &has_dir) || lstat(path, &it) < 0 ||
        (!S_ISDIR(it.st_mode) && !S_ISREG(it.st_mode)))
        return 0;
    int code = below == 0 || !has_dir ? landlock_allow(rules, path, below == 0 ? LANDLOCK_READ : LANDLOCK_LIST, fail)
                                      : 0;
    if (code == -ENOENT)
        return 0; /* it was just removed */
    return code < 0 || below == 0 ? code : allow_entries(rules, path, fail);
}

int host_image_allow(int rules, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; i < SYSTEM_DIRS && code == 0; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/%s", system_dirs[i]);
        code = S_ISDIR(host_type(system_dirs[i])) ? allow_tree(rules, path, fail) : 0;
    }
    return code;
}
