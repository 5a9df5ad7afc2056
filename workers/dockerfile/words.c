#include "workers/dockerfile/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

enum { NESTED_MAX = 8 };

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

size_t word_length(const char *text, char escape)
{
    size_t len = 0;
    char quote = 0;
    for (; text[len] && (quote || !is_blank(text[len])); len++) {
        if (text[len] == escape && quote != '\'' && text[len + 1])
            len++;
        else if (quote ? text[len] == quote : text[len] == '"' || text[len] == '\'')
            quote = quote ? 0 : text[len];
    }
    return len;
}

static int expand(const struct expansion *expansion, const char *text, size_t len, int depth, struct buffer *out,
                  struct fail *fail);

static bool is_of_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t name_length(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && is_of_name(text[n]))
        n++;
    return n;
}

/* Where the } of a ${ stands; len: nowhere. */
static size_t find_end(const char *text, size_t len, char escape)
{
    int depth = 1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == escape && i + 1 < len)
            i++;
        else if (text[i] == '$' && i + 1 < len && text[i + 1] == '{')
            depth++;
        else if (text[i] == '}' && --depth == 0)
            return i;
    }
    return len;
}

/* What stands between ${ and }. */
static int expand_braced(const struct expansion *expansion, const char *text, size_t len, int depth, struct buffer *out,
                         struct fail *fail)
{
    const size_t name_len = name_length(text, len);
    AUTO_FREE char *name = strndup(text, name_len);
    if (!name)
        return fail_memory(fail);
    const char *value = expansion->find(expansion->arg, name), *rest = text + name_len;
    if (name_len == 0)
        return fail_set(fail, -EINVAL, "${%.*s} has no name", (int)len, text);
    if (name_len == len) {
        buffer_append_str(out, value ? value : "");
        return 0;
    }
    const bool is_colon = *rest == ':';
    const char form = rest[is_colon];
    const size_t skipped = name_len + is_colon + 1;
    if (skipped > len || (form != '-' && form != '+'))
        return fail_set(fail, -EINVAL, "${%.*s} is not one of ${NAME}, ${NAME:-word}, ${NAME:+word}", (int)len, text);
    const bool is_given = value && (*value || !is_colon);
    if (form == '-' && is_given)
        buffer_append_str(out, value);
    else if ((form == '+') == is_given)
        return expand(expansion, text + skipped, len - skipped, depth + 1, out, fail);
    return 0;
}

/* Behind a $; *ret_used is how much of it was its. */
static int expand_variable(const struct expansion *expansion, const char *text, size_t len, int depth,
                           struct buffer *out, size_t *ret_used, struct fail *fail)
{
    if (len > 0 && text[0] == '{') {
        const size_t end = find_end(text + 1, len - 1, expansion->escape);
        *ret_used = end + 2;
        return end == len - 1 ? fail_set(fail, -EINVAL, "${ without its }")
                              : expand_braced(expansion, text + 1, end, depth, out, fail);
    }
    const size_t name_len = isdigit((unsigned char)text[0]) ? 1 : name_length(text, len);
    AUTO_FREE char *name = strndup(text, name_len);
    if (!name)
        return fail_memory(fail);
    const char *value = expansion->find(expansion->arg, name);
    buffer_append_str(out, name_len == 0 ? "$" : value ? value : "");
    *ret_used = name_len;
    return 0;
}

static int expand(const struct expansion *expansion, const char *text, size_t len, int depth, struct buffer *out,
                  struct fail *fail)
{
    char quote = 0;
    if (depth > NESTED_MAX)
        return fail_set(fail, -EINVAL, "more than %d levels of ${}", NESTED_MAX);
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        if (out->failed || out->len > EXPANDED_MAX)
            return fail_set(fail, -E2BIG, "it is longer than %d bytes when expanded", EXPANDED_MAX);
        if (c == expansion->escape && quote != '\'' && i + 1 < len) {
            const char next = text[++i];
            if (expansion->keeps_quotes ? next != '$' : quote == '"' && next != '"' && next != '$' && next != c)
                buffer_append(out, &c, 1);
            buffer_append(out, &next, 1);
        } else if (!expansion->keeps_quotes && (quote ? c == quote : c == '"' || c == '\'')) {
            quote = quote ? 0 : c;
        } else if (c == '$' && quote != '\'') {
            size_t used = 0;
            int code = expand_variable(expansion, text + i + 1, len - i - 1, depth, out, &used, fail);
            if (code < 0)
                return code;
            i += used;
        } else {
            buffer_append(out, &c, 1);
        }
    }
    return quote ? fail_set(fail, -EINVAL, "a quote %c is not closed", quote) : 0;
}

int word_expand(const struct expansion *expansion, const char *text, char **ret, struct fail *fail)
{
    AUTO_BUFFER out = {0};
    int code = expand(expansion, text, strlen(text), 0, &out, fail);
    if (code < 0)
        return code;
    if (out.len > EXPANDED_MAX)
        return fail_set(fail, -E2BIG, "it is longer than %d bytes when expanded", EXPANDED_MAX);
    *ret = buffer_take_str(&out);
    return *ret ? 0 : fail_memory(fail);
}
