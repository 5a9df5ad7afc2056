#include "client/cli/grade/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 512 }; /* each level holds a descriptor */

static void remove_at(int dir, const char *name, unsigned depth);

static void remove_content(int dir, unsigned depth)
{
    const struct dirent *entry;
    DIR *stream = fdopendir(dir);
    if (!stream) {
        close(dir);
        return;
    }
    while ((entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_at(dirfd(stream), entry->d_name, depth + 1);
    closedir(stream);
}

static void remove_at(int dir, const char *name, unsigned depth)
{
    if (unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0 || depth > DEPTH_MAX)
        return;
    int inner = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;
    if (inner < 0 && fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode) &&
        fchmodat(dir, name, S_IRWXU, 0) == 0)
        inner = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    fchmod(inner, S_IRWXU);
    remove_content(inner, depth);
    unlinkat(dir, name, AT_REMOVEDIR);
}

void remove_tree(const char *path) { remove_at(AT_FDCWD, path, 0); }
