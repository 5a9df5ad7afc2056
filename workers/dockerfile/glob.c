#include "workers/dockerfile/glob.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

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
            at++;
            high = *at == '\\' && at[1] ? *++at : *at;
            at++;
        }
        found |= c >= low && c <= high;
    }
    *end = *at == ']' ? at + 1 : NULL;
    return found != is_negated;
}

/* Where to go on when what follows a star does not match: behind it in the pattern, with one byte more of the text as
 * its own. */
struct star {
    const char *pattern, *text; /* NULL: there was none */
};

/* One byte of the text by what stands in the pattern; NULL: they differ. Behind it in the pattern. */
static const char *match_one(const char *pattern, char c)
{
    const char *end;
    if (*pattern == '[')
        return c != '/' && match_set(pattern + 1, c, &end) ? end : NULL;
    if (*pattern == '?')
        return c != '/' ? pattern + 1 : NULL;
    pattern += *pattern == '\\' && pattern[1];
    return *pattern == c ? pattern + 1 : NULL;
}

/* The star takes one more byte, or NULL: it may not. */
static const char *widen(struct star *star, bool takes_slash)
{
    if (!star->pattern || !*star->text || (*star->text == '/' && !takes_slash))
        return NULL;
    star->text++;
    return star->pattern;
}

/* The directories take one more, with its slash. */
static const char *widen_dirs(struct star *dirs)
{
    const char *pattern;
    do
        pattern = widen(dirs, true);
    while (pattern && dirs->text[-1] != '/');
    return pattern;
}

/*
 * Of two stars it is enough to widen the later one: what the earlier one would leave to it, it can take itself. But *
 * takes no slash, so that of a "**" before it is kept, too; and that, too, is the latest, as it begins where a name
 * does. So nothing recurs.
 */
static bool match(const char *pattern, const char *text, bool has_dirs)
{
    const char *const begin = pattern;
    struct star star = {0}, dirs = {0};
    for (;;) {
        const char *next = *pattern && *text ? match_one(pattern, *text) : NULL;
        const bool is_dirs = has_dirs && pattern[0] == '*' && pattern[1] == '*';
        if (is_dirs && !pattern[2 + (pattern[2] == '/')])
            return true;
        if (is_dirs && (pattern == begin || pattern[-1] == '/')) {
            pattern += 2 + (pattern[2] == '/');
            dirs = (struct star){pattern, text};
            star.pattern = NULL;
        } else if (*pattern == '*') {
            star = (struct star){++pattern, text};
        } else if (next) {
            pattern = next;
            text++;
        } else if (!*pattern && !*text) {
            return true;
        } else if ((next = widen(&star, false))) {
            pattern = next;
            text = star.text;
        } else if ((next = widen_dirs(&dirs))) {
            pattern = next;
            text = dirs.text;
            star.pattern = NULL;
        } else {
            return false;
        }
    }
}

bool glob_match(const char *pattern, const char *path) { return match(pattern, path, true); }

bool glob_match_name(const char *pattern, const char *name) { return match(pattern, name, false); }

/* ---- .dockerignore ---------------------------------------------------------------------------------- */

void ignore_finish(struct ignore *ignore)
{
    for (size_t i = 0; i < ignore->count; i++)
        free(ignore->patterns[i]);
    free(ignore->patterns);
    *ignore = (struct ignore){0};
}

/* Without "./", a "/" before and behind. */
static int add_pattern(struct ignore *ignore, const char *text, size_t len)
{
    const bool is_exception = len > 0 && *text == '!';
    text += is_exception;
    len -= is_exception;
    while (len > 0 && (*text == '/' || (len > 1 && text[0] == '.' && text[1] == '/')))
        text++, len--;
    while (len > 0 && text[len - 1] == '/')
        len--;
    if (len == 0 || (len == 1 && *text == '.'))
        return 0;
    if (ignore->count == IGNORE_PATTERNS_MAX || len >= PATH_MAX)
        return -E2BIG;
    char **more = reallocarray(ignore->patterns, ignore->count + 1, sizeof(*more));
    if (!more)
        return -ENOMEM;
    ignore->patterns = more;
    ignore->has_exceptions |= is_exception;
    char *kept = more[ignore->count] = malloc(len + 2);
    if (!kept)
        return -ENOMEM;
    ignore->count++;
    *kept = is_exception ? '!' : ' ';
    memcpy(kept + 1, text, len);
    kept[len + 1] = '\0';
    return 0;
}

int ignore_parse(struct slice text, struct ignore *ret)
{
    int code = 0;
    *ret = (struct ignore){0};
    text = text_without_mark(text);
    while (text.len > 0 && code == 0) {
        const uint8_t *end = memchr(text.data, '\n', text.len);
        const size_t len = end ? (size_t)(end - text.data) : text.len;
        const struct slice line = text_trim(slice_of(text.data, len));
        if (line.len > 0 && line.data[0] != '#')
            code = add_pattern(ret, (const char *)line.data, line.len);
        text = slice_of(text.data + len + (end != NULL), text.len - len - (end != NULL));
    }
    return code;
}

int ignore_decide(const struct ignore *ignore, const char *path, int above)
{
    for (int i = (int)ignore->count - 1; i > above; i--)
        if (glob_match(ignore->patterns[i] + 1, path))
            return i;
    return above;
}

bool ignore_names(const struct ignore *ignore, int decided)
{
    return decided >= 0 && ignore->patterns[decided][0] != '!';
}
