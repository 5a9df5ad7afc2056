#include "workers/sandbox/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/cleanup.h"
#include "workers/sandbox/tar.h"

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

struct first_name { /* of a file with several, in a tree by inode */
    ino_t inode;
    char path[];
};

struct pack {
    struct tar tar;
    void *first_names;
    char path[PACK_PATH_MAX + 1]; /* of the entry in hand, relative to the root */
    size_t path_len, depth;
    struct fail *fail;
};

static int pack_dir(struct pack *pack, int dir);

static int refuse(struct pack *pack, const char *what)
{
    return fail_set(pack->fail, -errno, "%s %s: %s", what, pack->path, strerror(errno));
}

/* ---- the path in hand --------------------------------------------------------------- */

static int enter_name(struct pack *pack, const char *name)
{
    size_t len = strlen(name);
    if (pack->path_len + len + 2 > PACK_PATH_MAX)
        return fail_set(pack->fail, -ENAMETOOLONG, "a path longer than %d bytes", PACK_PATH_MAX);
    if (pack->path_len > 0)
        pack->path[pack->path_len++] = '/';
    memcpy(pack->path + pack->path_len, name, len + 1);
    pack->path_len += len;
    return 0;
}

static void leave_name(struct pack *pack, size_t path_len)
{
    pack->path_len = path_len;
    pack->path[path_len] = '\0';
}

/* ---- entries ------------------------------------------------------------------------ */

static struct tar_entry entry_of(const struct pack *pack, const struct stat *it, char type)
{
    return (struct tar_entry){
        .path = pack->path, .type = type, .mode = it->st_mode, .mtime = it->st_mtim};
}

/* An empty file whose name says that something below is gone. */
static int put_marker(struct pack *pack, const char *prefix, const char *name)
{
    char marker[NAME_MAX + sizeof(OPAQUE)];
    size_t path_len = pack->path_len;
    snprintf(marker, sizeof(marker), "%s%s", prefix, name);
    int code = enter_name(pack, marker);
    if (code < 0)
        return code;
    tar_put(&pack->tar, &(struct tar_entry){.path = pack->path, .type = '0', .mode = 0644});
    leave_name(pack, path_len);
    return 0;
}

static int compare_inodes(const void *a, const void *b)
{
    const struct first_name *x = a, *y = b;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* The name under which this file is in the archive already, or NULL; it is noted then. */
static const char *find_first_name(struct pack *pack, const struct stat *it)
{
    struct first_name *mine = malloc(sizeof(*mine) + pack->path_len + 1);
    if (!mine)
        return NULL; /* packed once more, not wrong */
    mine->inode = it->st_ino;
    memcpy(mine->path, pack->path, pack->path_len + 1);
    struct first_name **there = tsearch(mine, &pack->first_names, compare_inodes);
    if (there && *there == mine)
        return NULL;
    free(mine);
    return there ? (*there)->path : NULL;
}

static int put_file(struct pack *pack, int dir, const char *name, const struct stat *it)
{
    struct tar_entry entry = entry_of(pack, it, '0');
    if (it->st_nlink > 1 && (entry.link = find_first_name(pack, it))) {
        entry.type = '1';
        tar_put(&pack->tar, &entry);
        return 0;
    }
    AUTO_CLOSE int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return refuse(pack, "cannot read");
    tar_put_file(&pack->tar, &entry, file, (uint64_t)it->st_size);
    return 0;
}

static int put_symlink(struct pack *pack, int dir, const char *name, const struct stat *it)
{
    char to[PATH_MAX + 1];
    ssize_t len = readlinkat(dir, name, to, sizeof(to) - 1);
    if (len < 0)
        return refuse(pack, "cannot read the link");
    to[len] = '\0';
    struct tar_entry entry = entry_of(pack, it, '2');
    entry.link = to;
    tar_put(&pack->tar, &entry);
    return 0;
}

static bool is_opaque(int dir)
{
    char value[2];
    return fgetxattr(dir, "user.overlay.opaque", value, sizeof(value)) == 1 && value[0] == 'y';
}

static int put_dir(struct pack *pack, int parent, const char *name, const struct stat *it)
{
    AUTO_CLOSE int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return refuse(pack, "cannot read");
    if (pack->depth == PACK_DEPTH_MAX)
        return fail_set(pack->fail, -ENAMETOOLONG, "directories more than %d deep", PACK_DEPTH_MAX);
    struct tar_entry entry = entry_of(pack, it, '5');
    tar_put(&pack->tar, &entry);
    int code = is_opaque(dir) ? put_marker(pack, OPAQUE, "") : 0;
    pack->depth++;
    if (code == 0)
        code = pack_dir(pack, dir);
    pack->depth--;
    return code;
}

static bool is_whiteout(const struct stat *it)
{
    return S_ISCHR(it->st_mode) && it->st_rdev == makedev(0, 0);
}

static int pack_one(struct pack *pack, int dir, const char *name)
{
    struct stat it;
    size_t path_len = pack->path_len;
    if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return 0;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(pack, "cannot look at an entry of");
    if (is_whiteout(&it))
        return put_marker(pack, WHITEOUT, name);
    int code = enter_name(pack, name);
    if (code == 0 && S_ISREG(it.st_mode))
        code = put_file(pack, dir, name, &it);
    else if (code == 0 && S_ISDIR(it.st_mode))
        code = put_dir(pack, dir, name, &it);
    else if (code == 0 && S_ISLNK(it.st_mode))
        code = put_symlink(pack, dir, name, &it);
    leave_name(pack, path_len);
    return code < 0 ? code : pack->tar.error;
}

/* ---- directories, in the order of their names' bytes -------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
    while (count > 0)
        free(names[--count]);
    free(names);
}

static int add_name(char ***names, size_t *count, const char *name)
{
    if ((*count & (*count - 1)) == 0) { /* full at each power of two */
        char **more = realloc(*names, (*count ? *count * 2 : 1) * sizeof(**names));
        if (!more)
            return -ENOMEM;
        *names = more;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    (*names)[(*count)++] = copy;
    return 0;
}

static int list_names(struct pack *pack, int dir, char ***ret, size_t *count)
{
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (!stream)
        return refuse(pack, "cannot list");
    const struct dirent *entry;
    while (code == 0 && (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            code = add_name(ret, count, entry->d_name);
    closedir(stream);
    if (code < 0)
        return fail_set(pack->fail, code, "out of memory");
    if (*count > 1)
        qsort(*ret, *count, sizeof(**ret), compare_names);
    return 0;
}

static int pack_dir(struct pack *pack, int dir)
{
    char **names = NULL;
    size_t count = 0;
    int code = list_names(pack, dir, &names, &count);
    for (size_t i = 0; i < count && code == 0; i++)
        code = pack_one(pack, dir, names[i]);
    free_names(names, count);
    return code;
}

int pack_upper(int upper, int fd, uint64_t *bytes, struct fail *fail)
{
    struct pack pack = {.tar = {.fd = fd}, .fail = fail};
    int code = pack_dir(&pack, upper);
    *bytes = 0;
    if (code == 0 && pack.tar.bytes > 0)
        code = tar_end(&pack.tar);
    if (code == 0)
        *bytes = pack.tar.bytes;
    else if (pack.tar.error < 0)
        fail_set(fail, code, "cannot write the archive: %s", strerror(-code));
    tdestroy(pack.first_names, free);
    tar_finish(&pack.tar);
    return code;
}
