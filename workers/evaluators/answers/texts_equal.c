#include "workers/evaluators/answers/texts_equal.h"

#include <ctype.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"

/* Blanks in a row are one, and those at the ends none. */
static void normalized(struct slice text, enum normalize normalize, struct buffer *out)
{
    bool blank = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        bool is_passed_over = normalize >= NORMALIZE_PUNCTUATION && c < 0x80 && ispunct(c);
        blank |= isspace(c) != 0;
        if (isspace(c) || is_passed_over)
            continue;
        if (blank && out->len)
            buffer_append(out, " ", 1);
        blank = false;
        c = normalize >= NORMALIZE_CASE && c < 0x80 ? (uint8_t)tolower(c) : c;
        buffer_append(out, &c, 1);
    }
}

bool texts_equal(struct slice a, struct slice b, enum normalize normalize)
{
    AUTO_BUFFER left = {0};
    AUTO_BUFFER right = {0};
    if (normalize == NORMALIZE_NONE)
        return slice_equal(a, b);
    normalized(a, normalize, &left);
    normalized(b, normalize, &right);
    return !left.failed && !right.failed && left.len > 0 && slice_equal(buffer_peek(&left), buffer_peek(&right));
}
