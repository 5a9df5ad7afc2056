#include "workers/sandbox/init/services/touched.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {
#define TAMPER_KIND(id, word, meaning) word,
#define TAMPER_PATH(id, pattern)
#include "schemas/trajectory/tamper.def"
#undef TAMPER_KIND
#undef TAMPER_PATH
};

static const struct {
    uint8_t kind;
    const char *pattern;
} patterns[] = {
#define TAMPER_KIND(id, word, meaning)
#define TAMPER_PATH(id, pattern) {TAMPER_##id, pattern},
#include "schemas/trajectory/tamper.def"
#undef TAMPER_KIND
#undef TAMPER_PATH
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* What lies in the workspace, which is most, but for its hidden files, can match nothing. */
static bool is_work(const char *path)
{
    static const char workspace[] = "workspace/";
    const size_t len = sizeof(workspace) - 1;
    return strncmp(path, workspace, len) == 0 && path[len] != '.';
}

/* As many names of it as `path` has; false where it has no more. */
static bool take_beginning(const char *pattern, const char *path, char *ret, size_t size)
{
    const char *end = strchr(pattern, '/');
    for (const char *at = strchr(path, '/'); at && end; at = strchr(at + 1, '/'))
        end = strchr(end + 1, '/');
    return end && snprintf(ret, size, "%.*s", (int)(end - pattern), pattern) < (int)size;
}

/* Whether what the pattern is of lies below `path`. */
static bool is_above(const char *path, const char *pattern)
{
    char beginning[64];
    return take_beginning(pattern, path, beginning, sizeof(beginning)) && fnmatch(beginning, path, FNM_PATHNAME) == 0;
}

/* TAMPER_KINDS: of none. */
static size_t find_kind(const char *path)
{
    for (size_t i = 0; i < COUNT(patterns); i++)
        if (fnmatch(patterns[i].pattern, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0)
            return patterns[i].kind;
    for (size_t i = 0; i < COUNT(patterns); i++)
        if (is_above(path, patterns[i].pattern))
            return patterns[i].kind;
    return TAMPER_KINDS;
}

void touched_note(struct touched *touched, const char *path)
{
    size_t kind = is_work(path) ? TAMPER_KINDS : find_kind(path);
    if (kind == TAMPER_KINDS)
        return;
    touched->count++;
    if (touched->of_kind[kind]++ >= TOUCHED_OF_A_KIND)
        return;
    touched->files[touched->file_count].kind = (uint8_t)kind;
    snprintf(touched->files[touched->file_count].path, TOUCHED_PATH_SIZE, "%.*s", TOUCHED_PATH_SIZE - 1, path);
    touched->file_count++;
}

/* Of those that may be new, those alone that files with names of their own are missed in. */
void touched_note_dir(struct touched *touched, const char *path, bool is_sure)
{
    static const char workspace[] = "workspace";
    bool is_noted = is_sure;
    for (size_t i = 0; i < COUNT(patterns) && !is_noted; i++)
        is_noted = is_above(path, patterns[i].pattern);
    if (is_noted && strncmp(path, workspace, sizeof(workspace) - 1) != 0)
        touched_note(touched, path);
}

size_t touched_write(const struct touched *touched, char ret[TOUCHED_TEXT_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < touched->file_count; i++) {
        len += (size_t)snprintf(ret + len, TOUCHED_TEXT_MAX - len, "%s", words[touched->files[i].kind]) + 1;
        len += (size_t)snprintf(ret + len, TOUCHED_TEXT_MAX - len, "%s", touched->files[i].path) + 1;
    }
    return len;
}
