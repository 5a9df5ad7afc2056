#include "workers/stages/build/build_context.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dir_names.h"
#include "workers/files/dirtree.h"
#include "workers/files/open_below.h"
#include "workers/runtime/offload.h"
#include "workers/sources/source.h"
#include "workers/stages/build/build_ignore.h"
#include "workers/stages/sandbox/stage_files.h"

#define CONTEXT "context" /* its name in the directory of the cache */
enum { PIECE = 256 * 1024 };

/* ---- opening ------------------------------------------------------------------------------------------------ */

struct opening {
    const struct job *job;
    const struct task_build *build;
    struct build_context *into;
    struct fail *fail;
};

static int copy_context(const struct opening *opening, int root, const atomic_bool *stop)
{
    bool is_file = false;
    const char *source = opening->build->context;
    int code = stage_copy_source(opening->job, source, root, CONTEXT, stop, &is_file, opening->fail);
    if (code < 0)
        return fail_wrap(opening->fail, "build.context");
    return is_file ? fail_set(opening->fail, -EINVAL, "build.context %.300s is neither a directory nor a tar", source)
                   : 0;
}

/* Each at its path below the context, also one that begins with "/". */
static int write_file(const struct opening *opening, int root, const struct task_file *file)
{
    const struct slice content = slice_of(file->content, file->content_len);
    int code = dirtree_write(root, file->path + strspn(file->path, "/"), content, file->mode, opening->fail);
    if (code < 0)
        fail_wrap(opening->fail, "build.files");
    return blame_is_file_fault(code) ? -EINVAL : code;
}

static int write_files(const struct opening *opening, int root)
{
    const struct task_file_list *files = &opening->build->files;
    AUTO_CLOSE int into = mkdirat(root, CONTEXT, 0755) < 0 ? -1
                                                           : openat(root, CONTEXT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = into < 0 ? dirtree_refuse(opening->fail, "make", CONTEXT) : 0;
    for (size_t i = 0; i < files->count && code == 0; i++)
        code = write_file(opening, into, &files->each[i]);
    return code;
}

static int open_work(void *arg, const atomic_bool *stop)
{
    struct opening *opening = arg;
    struct fail *fail = opening->fail;
    int code = layer_dir_make(opening->job->context->layers.cache, &opening->into->dir, fail);
    AUTO_CLOSE int root = code < 0 ? -1 : open(opening->into->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return code < 0 ? code : dirtree_refuse(fail, "open", opening->into->dir.path);
    code = opening->build->context ? copy_context(opening, root, stop) : write_files(opening, root);
    if (code < 0)
        return code;
    opening->into->root = openat(root, CONTEXT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return opening->into->root < 0 ? dirtree_refuse(fail, "open", CONTEXT)
                                   : build_ignore_apply(opening->into->root, stop, fail);
}

int build_context_open(const struct job *job, const struct task_build *build, struct build_context *ret,
                       struct fail *fail)
{
    struct opening opening = {.job = job, .build = build, .into = ret, .fail = fail};
    ret->root = -1;
    return build->context || build->files.count > 0 ? offload_run(open_work, &opening, fail) : 0;
}

void build_context_close(struct build_context *context)
{
    cleanup_close(&context->root);
    context->root = -1;
    layer_dir_discard(&context->dir);
}

/* ---- contents ------------------------------------------------------------------------------------------------- */

struct content {
    struct digest *digest;
    const atomic_bool *stop;
};

static int add_data(const struct content *content, int file)
{
    AUTO_FREE uint8_t *piece = malloc(PIECE);
    if (!piece)
        return -ENOMEM;
    for (ssize_t got; (got = read(file, piece, PIECE)) != 0;) {
        if (atomic_load(content->stop))
            return -ECANCELED;
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0)
            digest_add(content->digest, slice_of(piece, (size_t)got));
    }
    return 0;
}

static int add_node(const struct content *content, int dir, const char *name, const char *path);

static int add_directory(const struct content *content, int dir, const char *path)
{
    struct dir_names names;
    int code = dir_names_read(dir, SOURCE_ENTRIES_MAX, &names);
    digest_add_number(content->digest, names.count);
    for (size_t i = 0; i < names.count && code == 0; i++) {
        AUTO_FREE char *inner = dirtree_join_below(path, names.each[i]);
        code = inner ? add_node(content, dir, names.each[i], inner) : -ENOMEM;
    }
    dir_names_finish(&names);
    return code;
}

static int add_opened(const struct content *content, int file, mode_t mode, const char *path)
{
    struct stat it;
    char words[64];
    if (fstat(file, &it) < 0)
        return -errno;
    snprintf(words, sizeof(words), "%c %o %lld", S_ISDIR(mode) ? 'd' : 'f', mode & 07777,
             S_ISDIR(mode) ? 0LL : (long long)it.st_size);
    digest_add_text(content->digest, path);
    digest_add_text(content->digest, words);
    return S_ISDIR(mode) ? add_directory(content, file, path) : add_data(content, file);
}

static int add_link(const struct content *content, int dir, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);
    if (len < 0)
        return -errno;
    target[len] = '\0';
    digest_add_text(content->digest, path);
    digest_add_text(content->digest, "l");
    digest_add_text(content->digest, target);
    return 0;
}

static int add_node(const struct content *content, int dir, const char *name, const char *path)
{
    struct stat it;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISLNK(it.st_mode))
        return add_link(content, dir, name, path);
    AUTO_CLOSE int file = dirtree_open_own(dir, name, O_RDONLY | O_NONBLOCK, it.st_mode);
    int code = file < 0 ? -errno : add_opened(content, file, it.st_mode, path);
    if (S_ISDIR(it.st_mode))
        dirtree_leave_own(file, it.st_mode);
    return code;
}

int build_content_add(struct digest *digest, int root, const char *path, const atomic_bool *stop)
{
    const struct content content = {.digest = digest, .stop = stop};
    struct stat it;
    AUTO_CLOSE int file = open_in_root(root, path, O_RDONLY | O_NONBLOCK, 0);
    return file < 0 || fstat(file, &it) < 0 ? -errno : add_opened(&content, file, it.st_mode, "");
}
