#include "common/base/log_json.h"

#include <stdio.h>
#include <sys/random.h>

#include "common/base/sanitize.h"

enum { NAMES_MAX = 32, END_RESERVE = 4 /* "\"}\n" */ };

/* ---- marks ------------------------------------------------------------------------------- */

void log_json_make_mark(char mark[LOG_JSON_MARK_SIZE])
{
    uint32_t secret;
    if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
        secret = 0x5d1ce;
    snprintf(mark, LOG_JSON_MARK_SIZE, "\x1e%08x\x1f", (unsigned)secret);
}

static bool is_of_name(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '-';
}

/* Of the name that `text` begins with, which '=' follows; 0: it begins with none. */
static size_t name_length(struct slice text)
{
    size_t len = 0;
    while (len < text.len && is_of_name(text.data[len]))
        len++;
    return len < text.len && text.data[len] == '=' ? len : 0;
}

void log_json_mark(const char *format, const char *mark, char ret[LOG_JSON_FORMAT_SIZE])
{
    const size_t mark_len = strlen(mark);
    size_t len = 0;
    bool is_quoted = false;
    for (const char *at = format; *at && len + mark_len + 2 < LOG_JSON_FORMAT_SIZE; at++) {
        const bool is_begin = at == format || (at[-1] == ' ' && !is_quoted && name_length(slice_from_str(at)) > 0);
        if (is_begin) {
            memcpy(ret + len, mark, mark_len);
            len += mark_len;
        }
        is_quoted ^= *at == '"';
        ret[len++] = *at;
    }
    ret[len] = '\0';
}

/* ---- writing ------------------------------------------------------------------------------ */

struct line {
    char *text;
    size_t len;
    struct slice names[NAMES_MAX]; /* that are there already */
    size_t name_count;
};

/* Whether it was written: there is always room for the end of the string and the object behind it. */
static bool put(struct line *line, const char *text, size_t len)
{
    if (line->len + len + END_RESERVE > LOG_JSON_LINE_SIZE)
        return false;
    memcpy(line->text + line->len, text, len);
    line->len += len;
    return true;
}

/* One character of it, as it stands within quotes. */
static bool put_character(struct line *line, struct slice text, size_t *ret_size)
{
    uint32_t steers;
    char escaped[8];
    *ret_size = sanitize_next(text, &steers);
    const uint8_t byte = text.data[0];
    if (byte == '"' || byte == '\\')
        return put(line, byte == '"' ? "\\\"" : "\\\\", 2);
    if (!steers)
        return put(line, (const char *)text.data, *ret_size);
    return put(line, escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)steers & 0xffff));
}

static void put_escaped(struct line *line, struct slice text)
{
    size_t size = 0;
    for (size_t at = 0; at < text.len; at += size)
        if (!put_character(line, slice_of(text.data + at, text.len - at), &size))
            return;
}

static bool is_taken(const struct line *line, struct slice name)
{
    for (size_t i = 0; i < line->name_count; i++)
        if (slice_equal(line->names[i], name))
            return true;
    return line->name_count == NAMES_MAX;
}

/* Nothing where there is one of that name, or no room for the name and a little of the value. */
static void put_pair(struct line *line, struct slice name, struct slice value)
{
    enum { LITTLE = 16 };
    if (name.len == 0 || is_taken(line, name) || line->len + name.len * 2 + LITTLE + END_RESERVE > LOG_JSON_LINE_SIZE)
        return;
    line->names[line->name_count++] = name;
    put(line, line->len > 1 ? ",\"" : "\"", line->len > 1 ? 2 : 1);
    put_escaped(line, name);
    put(line, "\":\"", 3);
    put_escaped(line, value);
    line->text[line->len++] = '"'; /* which put left room for, as for the end of the object */
}

/* ---- pairs -------------------------------------------------------------------------------- */

static struct slice trim(struct slice text)
{
    while (text.len > 0 && text.data[text.len - 1] == ' ')
        text.len--;
    return text;
}

static struct slice after(struct slice text, size_t count) { return slice_of(text.data + count, text.len - count); }

/* Where a further pair begins in it, behind a blank; its length where none does. */
static size_t find_pair(struct slice text)
{
    for (size_t i = 1; i < text.len; i++)
        if (text.data[i - 1] == ' ' && name_length(after(text, i)) > 0)
            return i;
    return text.len;
}

/* The value that `text` begins with: in quotes all of it, as a pair in quotes is the last; else up to another pair. */
static size_t value_length(struct slice text, struct slice *ret)
{
    const bool is_quoted = text.len > 0 && text.data[0] == '"';
    const bool is_closed = is_quoted && text.len > 1 && text.data[text.len - 1] == '"';
    const size_t len = is_quoted ? text.len : find_pair(text);
    *ret = is_quoted ? slice_of(text.data + 1, len - 1 - is_closed) : trim(slice_of(text.data, len));
    return len;
}

/* A pair, and what the program has put behind it as text of its own: further ones. */
static void put_pairs(struct line *line, struct slice text)
{
    size_t len;
    for (text = trim(text); (len = name_length(text)) > 0;) {
        const struct slice name = slice_of(text.data, len);
        struct slice value;
        text = after(text, len + 1);
        text = after(text, value_length(text, &value));
        put_pair(line, name, value);
    }
}

/* Without what is left of a mark at its end, where the text was cut. */
static struct slice without_cut_mark(struct slice text, const char *mark)
{
    for (size_t len = strlen(mark) - 1; len > 0; len--)
        if (text.len >= len && memcmp(text.data + text.len - len, mark, len) == 0)
            return slice_of(text.data, text.len - len);
    return text;
}

size_t log_json_line(const struct log_json_head *head, struct slice text, const char *mark,
                     char ret[LOG_JSON_LINE_SIZE])
{
    struct line line = {.text = ret, .len = 1};
    const size_t mark_len = strlen(mark);
    text = without_cut_mark(text, mark);
    ret[0] = '{';
    put_pair(&line, slice_from_str("time"), slice_from_str(head->time));
    put_pair(&line, slice_from_str("level"), slice_from_str(head->level));
    put_pair(&line, slice_from_str("program"), slice_from_str(head->program));
    put_pair(&line, slice_from_str("id"), slice_from_str(head->id));
    while (text.len >= mark_len && memcmp(text.data, mark, mark_len) == 0) {
        text = after(text, mark_len);
        const uint8_t *next = text.len ? memmem(text.data, text.len, mark, mark_len) : NULL;
        const size_t len = next ? (size_t)(next - text.data) : text.len;
        put_pairs(&line, slice_of(text.data, len));
        text = after(text, len);
    }
    memcpy(ret + line.len, "}\n", 2);
    return line.len + 2;
}
