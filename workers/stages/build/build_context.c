#include "workers/stages/build/build_context.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"
#include "workers/dockerfile/glob.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_remove.h"
#include "workers/runtime/offload.h"
#include "workers/stages/sandbox/stage_files.h"

#define CONTEXT "context" /* its name in the directory of the cache */
enum { PIECE = 256 * 1024, IGNORE_BYTES_MAX = 1 << 20 };

int build_open(int root, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path[0] ? path : ".", &how, sizeof(how));
}

/* ---- names of a directory, in order ------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void build_match_finish(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

static int add_path(char ***paths, size_t *count, char *path)
{
    char **more = path ? reallocarray(*paths, *count + 1, sizeof(*more)) : NULL;
    if (!more) {
        free(path);
        return -ENOMEM;
    }
    *paths = more;
    more[(*count)++] = path;
    return 0;
}

static int list_names(int dir, char ***ret, size_t *ret_count)
{
    const struct dirent *entry;
    int code = 0, own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (!stream) {
        code = -errno;
        cleanup_close(&own);
        return code;
    }
    while (code == 0 && (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            code = add_path(ret, ret_count, strdup(entry->d_name));
    closedir(stream);
    if (code == 0 && *ret_count)
        qsort(*ret, *ret_count, sizeof(**ret), compare_names);
    return code;
}

static char *join(const char *dir, const char *name) { return dir[0] ? dirtree_join(dir, name) : strdup(name); }

/* ---- .dockerignore --------------------------------------------------------------------------------------- */

static int drop_ignored(const struct ignore *ignore, int root, const char *path);

static int drop_entry(const struct ignore *ignore, int dir, const char *path)
{
    struct stat it;
    const char *name = dirtree_leaf(path);
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    const bool is_ignored = ignore_holds(ignore, path);
    if (!is_ignored || (S_ISDIR(it.st_mode) && ignore->has_exceptions)) {
        AUTO_CLOSE int inner = S_ISDIR(it.st_mode) ? dirtree_open_own(dir, name, O_RDONLY | O_DIRECTORY, it.st_mode)
                                                   : -1;
        int code = inner < 0 ? 0 : drop_ignored(ignore, inner, path);
        if (code == 0 && is_ignored && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY)
            code = -errno;
        return code;
    }
    if (S_ISDIR(it.st_mode))
        return dirtree_remove_at(dir, name);
    return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static int drop_ignored(const struct ignore *ignore, int dir, const char *path)
{
    char **names = NULL;
    size_t count = 0;
    int code = list_names(dir, &names, &count);
    for (size_t i = 0; i < count && code == 0; i++) {
        AUTO_FREE char *inner = join(path, names[i]);
        code = inner ? drop_entry(ignore, dir, inner) : -ENOMEM;
    }
    build_match_finish(names, count);
    return code;
}

static int apply_ignore(int root, struct fail *fail)
{
    struct stat it;
    struct ignore ignore = {0};
    AUTO_CLOSE int file = openat(root, ".dockerignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return 0;
    if (fstat(file, &it) < 0 || it.st_size > IGNORE_BYTES_MAX)
        return fail_set(fail, -EINVAL, "the .dockerignore has more than %d bytes", IGNORE_BYTES_MAX);
    AUTO_FREE char *text = malloc((size_t)it.st_size + 1);
    ssize_t len = text ? pread(file, text, (size_t)it.st_size, 0) : -1;
    int code = len >= 0 && ignore_parse(slice_of(text, (size_t)len), &ignore)
                   ? 0
                   : fail_set(fail, -EINVAL, "the .dockerignore has more than %d patterns", IGNORE_PATTERNS_MAX);
    if (code == 0 && ignore.count > 0 && (code = drop_ignored(&ignore, root, "")) < 0)
        fail_set(fail, -EIO, "cannot remove what the .dockerignore names: %s", strerror(-code));
    ignore_finish(&ignore);
    return code < 0 ? fail->code : 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------ */

struct opening {
    const struct job *job;
    struct build_context *into;
    struct fail *fail;
};

static int open_work(void *arg, const atomic_bool *stop)
{
    struct opening *opening = arg;
    struct fail *fail = opening->fail;
    bool is_file = false;
    int code = layer_dir_make(opening->job->context->layers.cache, &opening->into->dir, fail);
    AUTO_CLOSE int root = code < 0 ? -1 : open(opening->into->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return code < 0 ? code : dirtree_refuse(fail, "open", opening->into->dir.path);
    code = stage_copy_source(opening->job, opening->job->task->build.context, root, CONTEXT, stop, &is_file, fail);
    if (code < 0)
        return fail_wrap(fail, "build.context");
    if (is_file)
        return fail_set(fail, -EINVAL, "build.context %.300s is neither a directory nor a tar",
                        opening->job->task->build.context);
    opening->into->root = openat(root, CONTEXT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return opening->into->root < 0 ? dirtree_refuse(fail, "open", CONTEXT) : apply_ignore(opening->into->root, fail);
}

int build_context_open(const struct job *job, struct build_context *ret, struct fail *fail)
{
    struct opening opening = {.job = job, .into = ret, .fail = fail};
    ret->root = -1;
    return job->task->build.context ? offload_run(open_work, &opening, fail) : 0;
}

void build_context_close(struct build_context *context)
{
    cleanup_close(&context->root);
    context->root = -1;
    layer_dir_discard(&context->dir);
}

/* ---- contents ------------------------------------------------------------------------------------------------- */

static void add_text(struct digest *digest, const char *text) { digest_add(digest, slice_of(text, strlen(text) + 1)); }

static int add_data(struct digest *digest, int file)
{
    AUTO_FREE uint8_t *piece = malloc(PIECE);
    if (!piece)
        return -ENOMEM;
    for (ssize_t got; (got = read(file, piece, PIECE)) != 0;) {
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0)
            digest_add(digest, slice_of(piece, (size_t)got));
    }
    return 0;
}

static int add_node(struct digest *digest, int dir, const char *name, const char *path);

static int add_directory(struct digest *digest, int dir, const char *path)
{
    char **names = NULL;
    size_t count = 0;
    int code = list_names(dir, &names, &count);
    for (size_t i = 0; i < count && code == 0; i++) {
        AUTO_FREE char *inner = join(path, names[i]);
        code = inner ? add_node(digest, dir, names[i], inner) : -ENOMEM;
    }
    build_match_finish(names, count);
    return code;
}

static int add_opened(struct digest *digest, int file, const char *path)
{
    struct stat it;
    char words[64];
    if (fstat(file, &it) < 0)
        return -errno;
    snprintf(words, sizeof(words), "%c %o %lld", S_ISDIR(it.st_mode) ? 'd' : 'f', it.st_mode & 07777,
             S_ISDIR(it.st_mode) ? 0LL : (long long)it.st_size);
    add_text(digest, path);
    add_text(digest, words);
    return S_ISDIR(it.st_mode) ? add_directory(digest, file, path) : add_data(digest, file);
}

static int add_node(struct digest *digest, int dir, const char *name, const char *path)
{
    char target[PATH_MAX];
    struct stat it;
    if (fstatat(dir, name, &it, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISLNK(it.st_mode)) {
        ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);
        target[len < 0 ? 0 : len] = '\0';
        add_text(digest, path);
        add_text(digest, "l");
        add_text(digest, target);
        return len < 0 ? -errno : 0;
    }
    AUTO_CLOSE int file = dirtree_open_own(dir, name, O_RDONLY | O_NONBLOCK, it.st_mode);
    return file < 0 ? -errno : add_opened(digest, file, path);
}

int build_content_add(struct digest *digest, int root, const char *path)
{
    AUTO_CLOSE int file = build_open(root, path, O_RDONLY | O_NONBLOCK);
    return file < 0 ? -errno : add_opened(digest, file, "");
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* Those in `dir` that the first name of `pattern` means, and of these what the rest means. */
static int match_below(int root, const char *dir, const char *pattern, char ***ret, size_t *ret_count)
{
    const size_t len = strcspn(pattern, "/");
    const char *rest = pattern + len + strspn(pattern + len, "/");
    AUTO_FREE char *first = strndup(pattern, len);
    AUTO_CLOSE int opened = build_open(root, dir, O_RDONLY | O_DIRECTORY);
    char **names = NULL;
    size_t count = 0;
    int code = !first ? -ENOMEM : opened < 0 ? 0 : list_names(opened, &names, &count);
    for (size_t i = 0; i < count && code == 0; i++) {
        AUTO_FREE char *path = glob_match(first, names[i]) ? join(dir, names[i]) : NULL;
        if (!path)
            continue;
        if (*rest)
            code = match_below(root, path, rest, ret, ret_count);
        else
            code = *ret_count == BUILD_MATCHES_MAX ? -E2BIG : add_path(ret, ret_count, take_ptr(&path));
    }
    build_match_finish(names, count);
    return code;
}

int build_match(int root, const char *pattern, char ***ret, size_t *ret_count)
{
    AUTO_FREE char *clean = dirtree_clean_path(pattern + strspn(pattern, "/"));
    *ret = NULL;
    *ret_count = 0;
    if (!clean)
        return -EINVAL;
    int code = 0;
    if (glob_is_pattern(clean)) {
        code = match_below(root, "", clean, ret, ret_count);
    } else {
        AUTO_CLOSE int there = build_open(root, clean, O_PATH);
        code = there < 0 ? -errno : add_path(ret, ret_count, take_ptr(&clean));
    }
    return code < 0 ? code : *ret_count == 0 ? -ENOENT : 0;
}
