#include "workers/engines/dialects/teller.h"

#include "common/base/utf8.h"

enum { CHARACTER_MAX = 4 }; /* bytes */

/* How servers repair a text, each in its own way; and no text here can hold NUL. */
static bool is_unsure(struct slice at)
{
    return *at.data == 0 || (at.len >= 3 && memcmp(at.data, "\xef\xbf\xbd", 3) == 0);
}

/* Whether more bytes may make a character of it. */
static bool is_begun(struct slice at)
{
    static const uint8_t after[] = {0x80, 0x80, 0x80};
    const uint8_t lead = *at.data;
    const size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint8_t bytes[CHARACTER_MAX];
    if (at.len >= whole || lead < 0xc2 || lead > 0xf4)
        return false;
    memcpy(bytes, at.data, at.len);
    memcpy(bytes + at.len, after, whole - at.len);
    if (at.len == 1 && (lead == 0xe0 || lead == 0xf0)) /* 0x80 alone would be overlong */
        bytes[1] = 0xa0;
    return utf8_sequence(slice_of(bytes, whole)) == whole;
}

/* How many of these bytes are certain. */
static size_t certain(struct slice bytes, bool *is_held)
{
    size_t at = 0;
    while (at < bytes.len) {
        const struct slice rest = slice_of(bytes.data + at, bytes.len - at);
        const size_t len = utf8_sequence(rest);
        if (len == 0 || is_unsure(rest)) {
            *is_held = len > 0 || !is_begun(rest);
            break;
        }
        at += len;
    }
    return at;
}

void teller_take(struct teller *teller, struct slice bytes)
{
    if (!teller->is_held)
        buffer_append(&teller->pending, bytes.data, bytes.len);
}

void teller_tell(struct teller *teller)
{
    if (teller->is_held || teller->pending.len == 0)
        return;
    const struct slice pending = buffer_peek(&teller->pending);
    const struct slice text = slice_of(pending.data, certain(pending, &teller->is_held));
    teller->is_held |= teller->pending.failed || !buffer_append(&teller->told, text.data, text.len);
    if (text.len == 0 || teller->told.failed)
        return;
    teller->listener->heard(teller->listener->arg, text);
    memmove(teller->pending.data, pending.data + text.len, pending.len - text.len);
    teller->pending.len -= text.len;
}

void teller_finish(struct teller *teller)
{
    buffer_finish(&teller->told);
    buffer_finish(&teller->pending);
}
