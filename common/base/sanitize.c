#include "common/base/sanitize.h"

#include <stdlib.h>

#include "common/base/utf8.h"

enum { NO_CHARACTER = 0xfffd };

/* Inclusive; besides what is below U+0100. */
static const struct {
    uint32_t first, last;
} steering[] = {
    {0x061c, 0x061c}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}, /* direction */
    {0x2028, 0x2029},                                                       /* ends of lines */
};

static bool does_steer(uint32_t character)
{
    if (character < 0xa0)
        return character < 0x20 || character >= 0x7f;
    for (size_t i = 0; i < sizeof(steering) / sizeof(*steering); i++)
        if (character >= steering[i].first && character <= steering[i].last)
            return true;
    return false;
}

size_t sanitize_next(struct slice text, uint32_t *ret_steers)
{
    *ret_steers = NO_CHARACTER;
    size_t len = utf8_sequence(text);
    if (len == 0)
        return 1;
    const uint32_t character = utf8_character(text.data, len);
    *ret_steers = does_steer(character) ? character : 0;
    return len;
}

/* How many bytes at the start are printable ASCII, as nearly all are. */
static size_t plain_prefix(struct slice text)
{
    size_t len = 0;
    while (len < text.len && text.data[len] >= 0x20 && text.data[len] < 0x7f)
        len++;
    return len;
}

size_t sanitize(char *text, size_t len, bool keeps_lines)
{
    struct slice rest = slice_of(text, len);
    char *to = text;
    while (rest.len > 0) {
        uint32_t steers = 0;
        const size_t plain = plain_prefix(rest), size = plain ? plain : sanitize_next(rest, &steers);
        const bool stays = steers == 0 || (keeps_lines && (steers == '\n' || steers == '\t'));
        if (stays)
            memmove(to, rest.data, size);
        else
            *to = '?';
        to += stays ? size : 1;
        rest = slice_of(rest.data + size, rest.len - size);
    }
    return (size_t)(to - text);
}

void sanitize_vprint(FILE *out, const char *format, va_list args)
{
    char *text;
    int len = vasprintf(&text, format, args);
    if (len < 0) {
        fputs("(out of memory)", out);
        return;
    }
    fwrite(text, 1, sanitize(text, (size_t)len, true), out);
    free(text);
}

void sanitize_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sanitize_vprint(out, format, args);
    va_end(args);
}
