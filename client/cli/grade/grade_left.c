#include "client/cli/grade/grade_left.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/files/host_paths.h"

enum { INLINE_MAX = 700 << 10 }; /* bytes of a single file, which goes along in the task */

/* ---- directories ------------------------------------------------------------------------------- */

/* Whether one holds the other. `place` may be a link, or not be there. */
static bool overlaps(const char *real, const char *place)
{
    AUTO_FREE char *there = place ? realpath(place, NULL) : NULL;
    return there && (host_path_is_in(real, there) || host_path_is_in(there, real));
}

/* The workers refuse it as a --task-dir, and with it all that is graded. */
static int check_dir(const struct grade_dirs *dirs, const char *path, const char *real, struct fail *fail)
{
    if (host_path_is_own(real))
        return fail_set(fail, -EINVAL, "%s is, holds or lies in what is the host's own (/etc, /proc, ...): copy it",
                        path);
    AUTO_FREE char *works_in = realpath(dirs->works_in, NULL);
    if (works_in && host_path_is_in(works_in, real))
        return fail_set(fail, -EINVAL, "%s holds %s, in which this command works: name what lies in it", path,
                        dirs->works_in);
    if (overlaps(real, dirs->data))
        return fail_set(fail, -EINVAL, "%s and --data %s hold one another", path, dirs->data);
    return 0;
}

int grade_dirs_add(struct grade_dirs *dirs, const char *path, struct fail *fail)
{
    AUTO_FREE char *real = realpath(path, NULL);
    if (!real)
        return fail_set(fail, -errno, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < dirs->count; i++)
        if (host_path_is_in(real, dirs->each[i]))
            return 0;
    int code = check_dir(dirs, path, real, fail);
    if (code < 0)
        return code;
    if (dirs->count == TEXTS_MAX)
        return fail_set(fail, -E2BIG, "%s: more than %d directories; --task-dir DIR names one that holds many of them",
                        path, TEXTS_MAX);
    dirs->each[dirs->count++] = take_ptr(&real);
    return 0;
}

void grade_dirs_finish(struct grade_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        free(dirs->each[i]);
    *dirs = (struct grade_dirs){0};
}

/* ---- one file or directory --------------------------------------------------------------------- */

/* [PATH=]FILE: FILE, and the PATH inside or NULL. What is there by its whole name has no PATH. */
static const char *split(const char *spec, char **ret_place)
{
    const char *mark = strchr(spec, '=');
    struct stat about;
    *ret_place = NULL;
    if (!mark || mark == spec || stat(spec, &about) == 0)
        return spec;
    *ret_place = strndup(spec, (size_t)(mark - spec));
    return mark + 1;
}

static int put_source(json_t *file, const char *path, struct grade_dirs *dirs, struct fail *fail)
{
    int code = grade_dirs_add(dirs, path, fail);
    AUTO_FREE char *real = code < 0 ? NULL : realpath(path, NULL);
    if (code == 0 && (!real || json_object_set_new(file, "source", json_string(real)) < 0))
        code = fail_set(fail, -EINVAL, "%s: its path is not UTF-8", path);
    return code;
}

static int put_content(json_t *file, const char *path, struct fail *fail)
{
    AUTO_FCLOSE FILE *opened = fopen(path, "re");
    AUTO_FREE unsigned char *content = malloc(INLINE_MAX + 1), *encoded = malloc(INLINE_MAX / 3 * 4 + 8);
    struct stat about;
    char mode[8];
    if (!content || !encoded)
        return fail_memory(fail);
    if (!opened || fstat(fileno(opened), &about) < 0)
        return fail_set(fail, -errno, "%s: %s", path, strerror(errno));
    const size_t len = fread(content, 1, INLINE_MAX + 1, opened);
    if (ferror(opened))
        return fail_set(fail, -EIO, "%s: it cannot be read", path);
    if (len > INLINE_MAX)
        return fail_set(fail, -EFBIG, "%s: a file alone is at most %d KiB; name the directory that holds it", path,
                        INLINE_MAX >> 10);
    EVP_EncodeBlock(encoded, content, (int)len);
    snprintf(mode, sizeof(mode), "%04o", (unsigned)about.st_mode & 0777);
    json_object_set_new(file, "base64", json_string((const char *)encoded));
    json_object_set_new(file, "mode", json_string(mode));
    return 0;
}

static int put_place(json_t *file, const char *place, const char *path, bool is_dir, struct fail *fail)
{
    const char *slash = strrchr(path, '/');
    const char *where = place ? place : is_dir ? "." : slash ? slash + 1 : path;
    return json_object_set_new(file, "path", json_string(where)) == 0
               ? 0
               : fail_set(fail, -EINVAL, "%s: its name is not UTF-8", path);
}

/* NULL: the sentence says why. */
static json_t *file_of(const char *spec, struct grade_dirs *dirs, struct fail *fail)
{
    AUTO_FREE char *place = NULL;
    struct stat about;
    const char *path = split(spec, &place);
    if (stat(path, &about) < 0) {
        fail_set(fail, -errno, "%s: %s", path, strerror(errno));
        return NULL;
    }
    const bool is_dir = S_ISDIR(about.st_mode);
    if (!is_dir && !S_ISREG(about.st_mode)) {
        fail_set(fail, -EINVAL, "%s: it is neither a directory nor a file", path);
        return NULL;
    }
    json_t *file = json_object();
    int code = put_place(file, place, path, is_dir, fail);
    if (code == 0)
        code = is_dir ? put_source(file, path, dirs, fail) : put_content(file, path, fail);
    if (code == 0)
        return file;
    json_decref(file);
    return NULL;
}

/* ---- the task ---------------------------------------------------------------------------------- */

static json_t *solution_of(const struct grade_left *left, struct grade_dirs *dirs, struct fail *fail)
{
    json_t *solution = json_object(), *files = json_array(), *file = NULL;
    json_object_set_new(solution, "files", files);
    for (size_t i = 0; i < left->file_count; i++)
        if ((file = file_of(left->files[i], dirs, fail)))
            json_array_append_new(files, file);
        else
            break;
    bool good = !left->file_count || file;
    if (good && left->text.len &&
        json_object_set_new(solution, "answer", json_stringn((const char *)left->text.data, left->text.len)) < 0) {
        fail_set(fail, -EINVAL, "the last words are not UTF-8");
        good = false;
    }
    if (good)
        return solution;
    json_decref(solution);
    return NULL;
}

/* With nothing at all to write or to say, the oracle would say what eval.answer does. */
static bool is_nothing(const struct grade_left *left)
{
    return left->source == GRADE_NOTHING || (left->source == GRADE_GIVEN && !left->file_count && !left->text.len);
}

static bool put_left(json_t *task, const struct grade_left *left, struct grade_dirs *dirs, struct fail *fail)
{
    json_object_set_new(task, "agent", json_pack("{s:s}", "kind", is_nothing(left) ? "none" : "oracle"));
    json_object_del(task, "samples");
    if (left->source != GRADE_GIVEN || is_nothing(left))
        return true;
    json_t *solution = solution_of(left, dirs, fail);
    return solution && json_object_set_new(task, "solution", solution) == 0;
}

char *grade_left_task(const char *task_json, const struct grade_left *left, struct grade_dirs *dirs, struct fail *fail)
{
    json_t *task = json_loads(task_json, JSON_ALLOW_NUL, NULL);
    char *text = NULL;
    if (left->source == GRADE_GIVEN && json_object_get(task, "steps"))
        fail_set(fail, -EINVAL,
                 "a task of steps is graded by --solution or --nothing: files do not say which step left them");
    else if (put_left(task, left, dirs, fail) && !(text = json_dumps(task, JSON_COMPACT)))
        fail_memory(fail);
    json_decref(task);
    return text;
}
