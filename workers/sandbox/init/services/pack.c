#include "workers/sandbox/init/services/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dir_names.h"
#include "workers/sandbox/proto/markers.h"
#include "workers/sandbox/init/services/tar.h"
#include "workers/files/dirtree.h"

enum { LIST_MAX = 65536 }; /* of a file's attributes' names: the kernel's own bound */

struct first_name { /* of a file with several, in a tree by inode */
    ino_t inode;
    char path[];
};

struct pack {
    struct tar tar;
    void *first_names;
    struct buffer records;        /* of the entry in hand's attributes */
    struct buffer names;          /* of these, as the kernel lists them */
    char path[PACK_PATH_MAX + 1]; /* of the entry in hand, relative to the root, as the tar has it */
    size_t path_len, depth;
    enum pack_form form;
    bool is_merged; /* what lies below shows through in the directory in hand */
    struct touched *touched;
    struct fail *fail;
};

static int pack_dir(struct pack *pack, int dir);

static int refuse(struct pack *pack, const char *what)
{
    return fail_set(pack->fail, -errno, "%s %s: %s", what, pack->path, strerror(errno));
}

/* ---- the path in hand --------------------------------------------------------------- */

static int enter_name(struct pack *pack, const char *prefix, const char *name)
{
    const char *literal = strncmp(name, MARKER, strlen(MARKER)) == 0 ? MARKER_LITERAL : "";
    size_t room = sizeof(pack->path) - 1 - pack->path_len;
    int len = snprintf(pack->path + pack->path_len, room, "%s%s%s%s", pack->path_len ? "/" : "", prefix, literal, name);
    if ((size_t)len >= room)
        return fail_set(pack->fail, -ENAMETOOLONG, "a path longer than %d bytes", PACK_PATH_MAX);
    pack->path_len += (size_t)len;
    return 0;
}

static void leave_name(struct pack *pack, size_t path_len)
{
    pack->path_len = path_len;
    pack->path[path_len] = '\0';
}

/* In the directory in hand. */
static void note(const struct pack *pack, const char *name)
{
    char path[PACK_PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof(path), "%s%s%s", pack->path, pack->path_len ? "/" : "", name);
    touched_note(pack->touched, path);
}

/* ---- entries ------------------------------------------------------------------------ */

static struct tar_entry entry_of(const struct pack *pack, const struct stat *it, char type)
{
    return (struct tar_entry){.path = pack->path, .type = type, .mode = it->st_mode, .mtime = it->st_mtim};
}

/* An empty file whose name says that something below is gone. */
static int put_marker(struct pack *pack, const char *marker, const char *name)
{
    size_t path_len = pack->path_len;
    int code = enter_name(pack, marker, name);
    if (code < 0)
        return code;
    tar_put(&pack->tar, &(struct tar_entry){.path = pack->path, .type = '0', .mode = 0644});
    leave_name(pack, path_len);
    return 0;
}

/* ---- attributes --------------------------------------------------------------------- */

struct attributes { /* what the overlay's own say */
    bool is_opaque, has_origin;
};

#define OVERLAY_PREFIX "user.overlay."
#define FUSE_PREFIX "user.fuseoverlayfs."

/* How many bytes were kept of the one called `name`. */
static size_t keep_attribute(struct pack *pack, int fd, const char *name, size_t room)
{
    uint8_t value[PACK_ATTRIBUTES_MAX];
    size_t name_len = strlen(name);
    if (strncmp(name, "user.", 5) != 0 || strchr(name, '=') || name_len >= room)
        return 0;
    ssize_t len = fgetxattr(fd, name, value, room - name_len);
    if (len < 0)
        return 0;
    tar_add_attribute(&pack->records, name, slice_of(value, (size_t)len));
    return name_len + (size_t)len;
}

/* Those to keep become records for the tar. */
static void read_attributes(struct pack *pack, int fd, struct attributes *ret)
{
    char value, *names = (char *)buffer_reserve(&pack->names, LIST_MAX);
    size_t room = PACK_ATTRIBUTES_MAX;
    ssize_t len = names ? flistxattr(fd, names, LIST_MAX) : -1;
    *ret = (struct attributes){0};
    buffer_clear(&pack->records);
    if (!names)
        pack->tar.error = -ENOMEM;
    for (const char *name = names; name < names + len; name += strlen(name) + 1)
        if (strcmp(name, OVERLAY_PREFIX "opaque") == 0)
            ret->is_opaque = fgetxattr(fd, name, &value, 1) == 1 && value == 'y';
        else if (strcmp(name, OVERLAY_PREFIX "origin") == 0)
            ret->has_origin = true; /* copied up from below */
        else if (strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) != 0 &&
                 strncmp(name, FUSE_PREFIX, strlen(FUSE_PREFIX)) != 0)
            room -= keep_attribute(pack, fd, name, room);
}

/* ---- files -------------------------------------------------------------------------- */

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

/* Of a file that its owner may not read: whoever has no right to all files needs that one for attributes, too. */
static void read_shut_attributes(struct pack *pack, int file, mode_t mode, struct attributes *ret)
{
    const bool is_shut = (mode & S_IRUSR) == 0 && fchmod(file, (mode & 07777) | S_IRUSR) == 0;
    read_attributes(pack, file, ret);
    if (is_shut)
        fchmod(file, mode & 07777);
}

static int put_file(struct pack *pack, int dir, const char *name, const struct stat *it)
{
    struct tar_entry entry = entry_of(pack, it, '0');
    if (it->st_nlink > 1 && (entry.link = find_first_name(pack, it))) {
        entry.type = '1';
        tar_put(&pack->tar, &entry);
        return 0;
    }
    if ((uint64_t)it->st_size > PACK_FILE_MAX)
        return fail_set(pack->fail, -EFBIG, "a file of more than %llu GiB: %.200s",
                        (unsigned long long)(PACK_FILE_MAX >> 30), pack->path);
    AUTO_CLOSE int file = dirtree_open_own(dir, name, O_RDONLY, it->st_mode);
    if (file < 0)
        return refuse(pack, "cannot read");
    struct attributes attributes;
    read_shut_attributes(pack, file, it->st_mode, &attributes);
    entry.records = buffer_peek(&pack->records);
    tar_put_file(&pack->tar, &entry, file, it);
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

static bool is_empty(int dir)
{
    const struct dirent *entry;
    AUTO_DIR stream = dir_stream_open(dir);
    return stream && dir_stream_next(stream, &entry) == 0;
}

static int put_open_dir(struct pack *pack, int dir, const struct stat *it)
{
    if (pack->form == PACK_FIRST && pack->depth == 0 && is_empty(dir))
        return 0;
    if (pack->depth == PACK_DEPTH_MAX)
        return fail_set(pack->fail, -ENAMETOOLONG, "directories more than %d deep", PACK_DEPTH_MAX);
    struct tar_entry entry = entry_of(pack, it, '5');
    struct attributes attributes;
    read_attributes(pack, dir, &attributes);
    entry.records = buffer_peek(&pack->records);
    tar_put(&pack->tar, &entry);
    if (attributes.is_opaque || (it->st_mode & S_IRUSR && it->st_mode & S_IXUSR) == 0)
        touched_note_dir(pack->touched, pack->path, true); /* none of what lay there is seen */
    attributes.is_opaque |= pack->form == PACK_WHOLE && pack->depth == 0;
    int code = attributes.is_opaque ? put_marker(pack, MARKER_OPAQUE, "") : 0;
    bool was_merged = pack->is_merged;
    pack->is_merged = attributes.has_origin && !attributes.is_opaque;
    pack->depth++;
    if (code == 0)
        code = pack_dir(pack, dir);
    pack->depth--;
    pack->is_merged = was_merged;
    return code;
}

static int put_dir(struct pack *pack, int parent, const char *name, const struct stat *it)
{
    AUTO_CLOSE int dir = dirtree_open_own(parent, name, O_RDONLY | O_DIRECTORY, it->st_mode);
    int code = dir < 0 ? refuse(pack, "cannot read") : put_open_dir(pack, dir, it);
    dirtree_leave_own(dir, it->st_mode);
    return code;
}

static bool is_kept(const struct stat *it)
{
    return S_ISREG(it->st_mode) || S_ISDIR(it->st_mode) || S_ISLNK(it->st_mode);
}

/* A whiteout, or what is left out: then a file of this name below must not come back. */
static int put_nothing(struct pack *pack, const char *name, const struct stat *it)
{
    bool is_whiteout = S_ISCHR(it->st_mode) && it->st_rdev == makedev(0, 0);
    return is_whiteout || pack->is_merged ? put_marker(pack, MARKER, name) : 0;
}

/* fuse-overlayfs writes both of its names for an opaque directory: one is enough. */
static int put_noted(struct pack *pack, const char *name)
{
    if (strcmp(name, MARKER_OPAQUE) == 0) {
        touched_note_dir(pack->touched, pack->path, false); /* all new ones are marked so */
        return put_marker(pack, MARKER_OPAQUE, "");
    }
    if (strcmp(name, MARKER ".opq") == 0)
        return 0;
    note(pack, name + strlen(MARKER));
    return put_marker(pack, MARKER, name + strlen(MARKER));
}

static int pack_one(struct pack *pack, int dir, const char *name)
{
    struct stat it;
    size_t path_len = pack->path_len;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(pack, "cannot look at an entry of");
    if (pack->form == PACK_FUSE && strncmp(name, MARKER, strlen(MARKER)) == 0)
        return put_noted(pack, name);
    if (pack->form == PACK_TREE && dirtree_is_whiteout(dir, name, &it))
        return put_marker(pack, MARKER, name);
    if (!S_ISDIR(it.st_mode))
        note(pack, name);
    if (!is_kept(&it))
        return put_nothing(pack, name, &it);
    int code = enter_name(pack, "", name);
    if (code == 0 && S_ISREG(it.st_mode))
        code = put_file(pack, dir, name, &it);
    else if (code == 0 && S_ISDIR(it.st_mode))
        code = put_dir(pack, dir, name, &it);
    else if (code == 0)
        code = put_symlink(pack, dir, name, &it);
    leave_name(pack, path_len);
    if (code == 0 && pack->tar.bytes > PACK_BYTES_MAX)
        code = fail_set(pack->fail, -EFBIG, "more than %llu MiB in all", (unsigned long long)(PACK_BYTES_MAX >> 20));
    return code < 0 ? code : pack->tar.error;
}

/* ---- directories, in the order of their names' bytes -------------------------------- */

static int pack_dir(struct pack *pack, int dir)
{
    struct dir_names names;
    int code = dir_names_read(dir, SIZE_MAX, &names) < 0 ? refuse(pack, "cannot list") : 0;
    for (size_t i = 0; i < names.count && code == 0; i++)
        code = pack_one(pack, dir, names.each[i]);
    dir_names_finish(&names);
    return code;
}

int pack_upper(int upper, int fd, enum pack_form form, const atomic_bool *stop, uint64_t *bytes,
               struct touched *touched, struct fail *fail)
{
    struct pack pack = {
        .tar = {.fd = fd, .stop = stop}, .is_merged = true, .form = form, .touched = touched, .fail = fail};
    int code = pack_dir(&pack, upper);
    *bytes = 0;
    if (code == 0 && pack.tar.bytes > 0)
        code = tar_end(&pack.tar);
    if (code == 0)
        *bytes = pack.tar.bytes;
    else if (pack.tar.error < 0)
        fail_set(fail, code, "cannot write the archive: %s", strerror(-code));
    tdestroy(pack.first_names, free);
    buffer_finish(&pack.records);
    buffer_finish(&pack.names);
    tar_finish(&pack.tar);
    return code;
}
