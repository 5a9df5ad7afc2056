#include "common/http/target.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/slice.h"
#include "common/base/utf8.h"

/* What a piece of it may hold when it is decoded. */
enum { PLUS_IS_SPACE = 1, MAY_HAVE_LINES = 2, MAY_HAVE_ENCODED_SLASHES = 4 };

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that %XX stands for; negative: none. */
static int escaped(struct slice at)
{
    const int high = at.len >= 3 ? digit((char)at.data[1]) : -1, low = at.len >= 3 ? digit((char)at.data[2]) : -1;
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static bool may_stand(int byte, int may)
{
    const bool is_line = byte == '\t' || byte == '\n' || byte == '\r';
    return (byte >= 0x20 && byte != 0x7f) || (is_line && (may & MAY_HAVE_LINES));
}

/* Words for what is wrong with it; NULL: *to is behind what was written, and a NUL. */
static const char *decode(struct slice from, int may, char **to)
{
    char *const first = *to, *at = first;
    for (size_t i = 0; i < from.len; i++) {
        int byte = from.data[i];
        if (byte == '%') {
            byte = escaped(slice_of(from.data + i, from.len - i));
            i += 2;
        } else if (byte == '+' && (may & PLUS_IS_SPACE)) {
            byte = ' ';
        }
        if (byte < 0)
            return "the path or query has a % that begins no escape";
        if (byte == '/' && from.data[i] != '/' && !(may & MAY_HAVE_ENCODED_SLASHES))
            return "the path has an encoded slash";
        if (!may_stand(byte, may))
            return "the path or query has a control character";
        *at++ = (char)byte;
    }
    *at = '\0';
    *to = at + 1;
    return utf8_is_valid(slice_of(first, (size_t)(at - first))) ? NULL : "the path or query is not UTF-8";
}

static bool has_dots(const char *path)
{
    for (const char *part = path; *part == '/'; part += strcspn(part, "/")) {
        part++;
        const size_t len = strcspn(part, "/");
        if ((len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
            return true;
    }
    return false;
}

static const char *read_query(const char *query, char *to, size_t *ret_len)
{
    char *const first = to;
    const char *fault = NULL;
    for (const char *at = query; !fault && *at;) {
        const size_t len = strcspn(at, "&"), name_len = strcspn(at, "=&");
        const size_t value_at = name_len < len ? name_len + 1 : len;
        const int may = PLUS_IS_SPACE | MAY_HAVE_LINES | MAY_HAVE_ENCODED_SLASHES;
        if (len > 0)
            fault = decode(slice_of(at, name_len), may, &to);
        if (len > 0 && !fault)
            fault = decode(slice_of(at + value_at, len - value_at), may, &to);
        at += len + (at[len] == '&');
    }
    *ret_len = fault ? 0 : (size_t)(to - first);
    return fault;
}

/* `to` has room for all of it, decoded. */
static const char *read_parts(const char *raw, bool takes_encoded_slashes, char *to, struct target *ret)
{
    const size_t path_len = strcspn(raw, "?");
    char *const path = to;
    if (raw[0] != '/')
        return "the request is for no path";
    const char *fault = decode(slice_of(raw, path_len), takes_encoded_slashes ? MAY_HAVE_ENCODED_SLASHES : 0, &to);
    if (!fault && has_dots(path))
        fault = "the path has a part that is . or ..";
    ret->query = to;
    if (!fault && raw[path_len] == '?')
        fault = read_query(raw + path_len + 1, to, &ret->query_len);
    if (!fault)
        ret->path = path;
    return fault;
}

static bool replace_unprintable(char *text)
{
    bool had = false;
    for (; *text; text++)
        if (*text <= 0x20 || *text >= 0x7f) {
            *text = '?';
            had = true;
        }
    return had;
}

bool target_parse(const char *raw, bool takes_encoded_slashes, struct target *ret)
{
    const size_t len = strlen(raw);
    /* Of a query each name without a `=` has one more byte decoded, so it is at most half as much again. */
    char *const memory = malloc(len + 1 + len + len / 2 + 4);
    *ret = (struct target){.raw = memory, .path = ""};
    if (!memory)
        return false;
    memcpy(memory, raw, len + 1);
    ret->fault = replace_unprintable(memory) ? "the path or query has a character that is not ASCII"
                                             : read_parts(raw, takes_encoded_slashes, memory + len + 1, ret);
    return true;
}

void target_finish(struct target *target)
{
    free(target->raw);
    *target = (struct target){.path = ""};
}

/* The pair behind it; NULL: it was the last. */
static const char *next_pair(const struct target *target, const char *pair)
{
    const char *value = pair + strlen(pair) + 1;
    const char *next = value + strlen(value) + 1;
    return next < target->query + target->query_len ? next : NULL;
}

static const char *first_pair(const struct target *target) { return target->query_len > 0 ? target->query : NULL; }

const char *target_query(const struct target *target, const char *name)
{
    for (const char *pair = first_pair(target); pair; pair = next_pair(target, pair))
        if (strcmp(pair, name) == 0)
            return pair + strlen(pair) + 1;
    return NULL;
}

size_t target_query_count(const struct target *target, const char *name)
{
    size_t count = 0;
    for (const char *pair = first_pair(target); pair; pair = next_pair(target, pair))
        count += strcmp(pair, name) == 0;
    return count;
}
