#include "workers/dockerfile/glob.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

enum { STEPS_MAX = 100000 }; /* of one comparison: what takes longer is no honest pattern */

bool glob_is_pattern(const char *text) { return strpbrk(text, "*?[") != NULL; }

/* Behind the [: whether it has `c`; *end is behind its ]. NULL there: it has none. */
static bool match_set(const char *set, char c, const char **end)
{
    const bool is_negated = *set == '^' || *set == '!';
    bool found = false;
    const char *at = set + is_negated;
    for (bool is_first = true; *at && (*at != ']' || is_first); is_first = false) {
        const char low = *at == '\\' && at[1] ? *++at : *at;
        char high = low;
        at++;
        if (*at == '-' && at[1] && at[1] != ']') {
            high = at[1] == '\\' && at[2] ? *(at += 2) : at[1];
            at += *at == '-' ? 2 : 1;
        }
        found |= c >= low && c <= high;
    }
    *end = *at == ']' ? at + 1 : NULL;
    return found != is_negated;
}

static bool match(const char *pattern, const char *path, int *steps)
{
    for (;; pattern++, path++) {
        if (++*steps > STEPS_MAX)
            return false;
        if (pattern[0] == '*' && pattern[1] == '*') {
            pattern += 2;
            pattern += *pattern == '/';
            for (const char *at = path;; at++) {
                if (match(pattern, at, steps))
                    return true;
                if (!*at)
                    return false;
            }
        }
        if (*pattern == '*') {
            for (const char *at = path;; at++) {
                if (match(pattern + 1, at, steps))
                    return true;
                if (!*at || *at == '/')
                    return false;
            }
        }
        const char *end;
        if (*pattern == '[' && *path && *path != '/') {
            if (!match_set(pattern + 1, *path, &end) || !end)
                return false;
            pattern = end - 1;
            continue;
        }
        if (!*pattern || !*path)
            return *pattern == *path;
        if (*pattern == '?' && *path != '/')
            continue;
        pattern += *pattern == '\\' && pattern[1];
        if (*pattern != *path)
            return false;
    }
}

bool glob_match(const char *pattern, const char *path)
{
    int steps = 0;
    return match(pattern, path, &steps);
}

/* ---- .dockerignore ---------------------------------------------------------------------------------- */

void ignore_finish(struct ignore *ignore)
{
    for (size_t i = 0; i < ignore->count; i++)
        free(ignore->patterns[i]);
    free(ignore->patterns);
    *ignore = (struct ignore){0};
}

/* Without "./", a "/" before and behind. */
static bool add_pattern(struct ignore *ignore, const char *text, size_t len)
{
    const bool is_exception = len > 0 && *text == '!';
    text += is_exception;
    len -= is_exception;
    while (len > 0 && (*text == '/' || (len > 1 && text[0] == '.' && text[1] == '/')))
        text++, len--;
    while (len > 0 && text[len - 1] == '/')
        len--;
    if (len == 0 || (len == 1 && *text == '.'))
        return true;
    char **more = ignore->count == IGNORE_PATTERNS_MAX
                      ? NULL
                      : reallocarray(ignore->patterns, ignore->count + 1, sizeof(*more));
    if (!more)
        return false;
    ignore->patterns = more;
    ignore->has_exceptions |= is_exception;
    char *kept = more[ignore->count] = malloc(len + 2);
    if (!kept)
        return false;
    ignore->count++;
    *kept = is_exception ? '!' : ' ';
    memcpy(kept + 1, text, len);
    kept[len + 1] = '\0';
    return true;
}

bool ignore_parse(struct slice text, struct ignore *ret)
{
    *ret = (struct ignore){0};
    AUTO_FREE char *copy = strndup(text.data ? (const char *)text.data : "", text.len);
    if (!copy)
        return false;
    for (char *at = copy; at;) {
        char *line = at, *end = strchr(at, '\n');
        at = end ? end + 1 : NULL;
        size_t len = end ? (size_t)(end - line) : strlen(line);
        while (len > 0 && isspace((unsigned char)line[len - 1]))
            len--;
        while (len > 0 && isspace((unsigned char)*line))
            line++, len--;
        if (len > 0 && *line != '#' && !add_pattern(ret, line, len))
            return false;
    }
    return true;
}

/* It, or a directory that it lies in. */
static bool matches_above(const char *pattern, const char *path)
{
    AUTO_FREE char *above = strdup(path);
    while (above && *above) {
        if (glob_match(pattern, above))
            return true;
        char *slash = strrchr(above, '/');
        *(slash ? slash : above) = '\0';
    }
    return false;
}

bool ignore_holds(const struct ignore *ignore, const char *path)
{
    for (size_t i = ignore->count; i-- > 0;)
        if (matches_above(ignore->patterns[i] + 1, path))
            return ignore->patterns[i][0] != '!';
    return false;
}
