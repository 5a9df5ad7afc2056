#include "schemas/metrics/times.h"

/* ---- writing --------------------------------------------------------------------------- */

/* Behind a blank, where it is not the first. */
static void begin_entry(struct buffer *out, const char *prefix, struct slice name)
{
    buffer_append_str(out, out->len > 0 ? " " : "");
    buffer_append_str(out, prefix);
    for (size_t i = 0; i < name.len; i++) {
        const uint8_t byte = name.data[i];
        buffer_append(out, byte <= ' ' || byte == '=' || byte == 0x7f ? (const uint8_t *)"_" : &name.data[i], 1);
    }
    buffer_append_str(out, "=");
}

void times_append(struct buffer *out, const char *prefix, const char *name, const struct observed *times)
{
    char mark = ':';
    if (observed_count(times) == 0)
        return;
    begin_entry(out, prefix, slice_from_str(name));
    buffer_printf(out, "%llu", (unsigned long long)(times->sum * 1000 + 0.5));
    for (size_t i = 0; i < OBSERVED_CLASSES_MAX; i++) {
        if (times->counts[i] == 0)
            continue;
        buffer_printf(out, "%c%zux%llu", mark, i, (unsigned long long)times->counts[i]);
        mark = ',';
    }
}

void traces_append(struct buffer *out, struct slice reason, uint64_t count)
{
    begin_entry(out, "", reason);
    buffer_printf(out, "%llu", (unsigned long long)count);
}

/* ---- reading --------------------------------------------------------------------------- */

enum { NUMBER_DIGITS = 15 }; /* so that sums of them stay exact */

/* The word from *at on, without the blanks around it; empty at the end. */
static struct slice take_word(struct slice text, size_t *at)
{
    while (*at < text.len && text.data[*at] == ' ')
        ++*at;
    const size_t from = *at;
    while (*at < text.len && text.data[*at] != ' ')
        ++*at;
    return slice_of(text.data + from, *at - from);
}

static bool take_number(struct slice *text, uint64_t *ret)
{
    size_t len = 0;
    *ret = 0;
    for (; len < text->len && len < NUMBER_DIGITS && text->data[len] >= '0' && text->data[len] <= '9'; len++)
        *ret = *ret * 10 + (uint64_t)(text->data[len] - '0');
    *text = slice_of(text->data + len, text->len - len);
    return len > 0;
}

static bool take_mark(struct slice *text, char mark)
{
    if (text->len == 0 || text->data[0] != (uint8_t)mark)
        return false;
    *text = slice_of(text->data + 1, text->len - 1);
    return true;
}

/* A name, '=' and what is behind it. */
static bool split(struct slice word, struct slice *ret_name, struct slice *ret_rest)
{
    const uint8_t *equals = word.len ? memchr(word.data, '=', word.len) : NULL;
    if (!equals || equals == word.data)
        return false;
    *ret_name = slice_of(word.data, (size_t)(equals - word.data));
    *ret_rest = slice_of(equals + 1, word.len - ret_name->len - 1);
    return true;
}

static bool read_times(struct slice rest, struct observed *ret)
{
    uint64_t ms, class, count;
    *ret = (struct observed){.sum = 0};
    if (!take_number(&rest, &ms) || !take_mark(&rest, ':'))
        return false;
    ret->sum = (double)ms / 1000;
    do {
        if (!take_number(&rest, &class) || !take_mark(&rest, 'x') || !take_number(&rest, &count) ||
            class >= OBSERVED_CLASSES_MAX)
            return false;
        ret->counts[class] += count;
    } while (take_mark(&rest, ','));
    return rest.len == 0;
}

bool times_next(struct slice text, size_t *at, struct times_entry *ret)
{
    struct slice word, rest;
    while ((word = take_word(text, at)).len > 0)
        if (split(word, &ret->name, &rest) && read_times(rest, &ret->times))
            return true;
    return false;
}

bool traces_next(struct slice text, size_t *at, struct slice *ret_reason, uint64_t *ret_count)
{
    struct slice word, rest;
    while ((word = take_word(text, at)).len > 0)
        if (split(word, ret_reason, &rest) && take_number(&rest, ret_count) && rest.len == 0)
            return true;
    return false;
}
