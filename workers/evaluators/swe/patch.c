#include "workers/evaluators/swe/patch.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/swe/log_line.h"

static const char header[] = "diff --git ";

/* ---- paths --------------------------------------------------------------------------------------- */

void paths_finish(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->each[i]);
    free(paths->each);
    *paths = (struct paths){.count = 0};
}

static bool paths_has(const struct paths *paths, const char *path)
{
    for (size_t i = 0; i < paths->count; i++)
        if (strcmp(paths->each[i], path) == 0)
            return true;
    return false;
}

static bool grow(struct paths *paths)
{
    if (paths->count < paths->capacity)
        return true;
    const size_t capacity = paths->capacity ? 2 * paths->capacity : 16;
    char **each = realloc(paths->each, capacity * sizeof(char *));
    if (!each)
        return false;
    paths->each = each;
    paths->capacity = capacity;
    return true;
}

/* One that is not there yet. */
static void append(struct paths *paths, char *path)
{
    if (path && grow(paths))
        paths->each[paths->count++] = path;
    else {
        free(path);
        paths->failed = true;
    }
}

void paths_add(struct paths *paths, struct slice path)
{
    char *copy = path.len ? strndup((const char *)path.data, path.len) : NULL;
    if (path.len == 0 || (copy && paths_has(paths, copy)))
        free(copy);
    else
        append(paths, copy);
}

/* ---- a path in quotes ------------------------------------------------------------------------------ */

static uint8_t escaped(uint8_t c)
{
    static const char from[] = "abtnvfr", to[] = "\a\b\t\n\v\f\r";
    const char *at = strchr(from, c);
    return at && c ? (uint8_t)to[at - from] : c;
}

/* The text of a quoted path that begins behind a quote; *ret_len bytes of it were read, with the quote behind it. */
static bool unquote(struct slice text, struct buffer *out, size_t *ret_len)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        if (c == '"') {
            *ret_len = i + 1;
            return true;
        }
        if (c == '\\' && ++i < text.len) {
            c = escaped(text.data[i]);
            if (i + 2 < text.len && text.data[i] >= '0' && text.data[i] <= '3') {
                c = (uint8_t)((text.data[i] - '0') * 64 + (text.data[i + 1] - '0') * 8 + (text.data[i + 2] - '0'));
                i += 2;
            }
        }
        buffer_append(out, &c, 1);
    }
    return false;
}

/* Adds "a/PATH", "b/PATH" or either in quotes; /dev/null is none. */
static void add_named(struct paths *paths, struct slice name)
{
    AUTO_BUFFER plain = {0};
    size_t len;
    if (name.len > 0 && name.data[0] == '"') {
        if (!unquote(slice_from(name, 1), &plain, &len))
            return;
        name = buffer_peek(&plain);
    }
    const uint8_t *tab = memchr(name.data ? (const void *)name.data : "", '\t', name.len);
    if (tab)
        name.len = (size_t)(tab - name.data);
    if (name.len > 2 && name.data[1] == '/' && (name.data[0] == 'a' || name.data[0] == 'b'))
        paths_add(paths, slice_from(name, 2));
}

/* Of "a/PATH b/PATH", twice the same, as git writes it where nothing was renamed. */
static void add_twins(struct paths *paths, struct slice both)
{
    const size_t half = both.len / 2;
    if (both.len > 0 && both.data[0] == '"')
        add_named(paths, both);
    else if (both.len % 2 == 1 && half > 2 && both.data[half] == ' ' &&
             memcmp(both.data + 2, both.data + half + 3, half - 2) == 0)
        add_named(paths, slice_of(both.data, half));
}

/* ---- a patch's lines ---------------------------------------------------------------------------------- */

/* The bytes of a line, without its end, and *rest behind it: what a patch has of \r is part of a line. */
static struct slice take_line(struct slice *rest)
{
    const uint8_t *end = memchr(rest->data, '\n', rest->len);
    const size_t len = end ? (size_t)(end - rest->data) : rest->len;
    const struct slice line = slice_of(rest->data, len);
    *rest = slice_from(*rest, end ? len + 1 : len);
    return line;
}

static void add_of_header(struct paths *paths, struct slice line, bool *is_header)
{
    static const char *const names[] = {"--- ", "+++ "}, *const renames[] = {"rename from ", "rename to ", "copy to "};
    if (log_line_starts(line, header)) {
        *is_header = true;
        add_twins(paths, slice_from(line, strlen(header)));
    } else if (log_line_starts(line, "@@ "))
        *is_header = false;
    for (size_t i = 0; *is_header && i < 2; i++)
        if (log_line_starts(line, names[i]))
            add_named(paths, slice_from(line, strlen(names[i])));
    for (size_t i = 0; *is_header && i < 3; i++)
        if (log_line_starts(line, renames[i]))
            paths_add(paths, slice_from(line, strlen(renames[i])));
}

void patch_list_files(struct slice patch, struct paths *ret)
{
    bool is_header = true;
    while (patch.len > 0)
        add_of_header(ret, take_line(&patch), &is_header);
}

/* ---- what is kept ----------------------------------------------------------------------------------------- */

static const char *const usual[] = {"conftest.py",    "pytest.ini",       ".pytest.ini",      "tox.ini", "setup.cfg",
                                    "pyproject.toml", "sitecustomize.py", "usercustomize.py", "*.pth"};

static bool is_like(const char *pattern, const char *path)
{
    const char *name = strrchr(path, '/');
    return strchr(pattern, '/') ? fnmatch(pattern, path, FNM_PATHNAME) == 0
                                : fnmatch(pattern, name ? name + 1 : path, 0) == 0;
}

static bool is_protected(const struct task_swe *swe, const char *path)
{
    for (size_t i = 0; swe->protected && i < swe->protected_count; i++)
        if (is_like(swe->protected[i], path))
            return true;
    for (size_t i = 0; !swe->protected && i < sizeof(usual) / sizeof(*usual); i++)
        if (is_like(usual[i], path))
            return true;
    return false;
}

void patch_kept_finish(struct patch_kept *kept)
{
    buffer_finish(&kept->patch);
    paths_finish(&kept->files);
    paths_finish(&kept->made);
    paths_finish(&kept->tests);
    paths_finish(&kept->is_protected);
}

/* One file's part of a patch, taken off *rest. */
static struct slice take_section(struct slice *rest, bool *ret_makes)
{
    const uint8_t *begin = rest->data;
    *ret_makes = false;
    for (bool is_first = true; rest->len > 0 && (is_first || !log_line_starts(*rest, header)); is_first = false) {
        const struct slice line = take_line(rest);
        *ret_makes |= log_line_starts(line, "new file mode ");
    }
    return slice_of(begin, (size_t)(rest->data - begin));
}

static void keep_section(struct slice section, const char *path, bool makes, const struct task_swe *swe,
                         const struct paths *tests, struct patch_kept *ret)
{
    if (paths_has(tests, path))
        append(&ret->tests, strdup(path));
    else if (is_protected(swe, path))
        append(&ret->is_protected, strdup(path));
    else {
        append(&ret->files, strdup(path));
        if (makes)
            append(&ret->made, strdup(path));
        buffer_append(&ret->patch, section.data, section.len);
    }
}

bool patch_keep(struct slice patch, const struct task_swe *swe, const struct paths *tests, struct patch_kept *ret)
{
    while (patch.len > 0) {
        AUTO_PATHS files = {0};
        bool makes;
        const struct slice section = take_section(&patch, &makes);
        if (!log_line_starts(section, header))
            return false;
        struct slice head = section;
        add_twins(&files, slice_from(take_line(&head), strlen(header)));
        if (files.count != 1)
            return false;
        keep_section(section, files.each[0], makes, swe, tests, ret);
    }
    return !ret->patch.failed && !ret->files.failed && !ret->made.failed && !ret->tests.failed &&
           !ret->is_protected.failed;
}
