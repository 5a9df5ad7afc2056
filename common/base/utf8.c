#include "common/base/utf8.h"

#include "common/base/wide.h"

size_t utf8_sequence(struct slice s)
{
    uint8_t b = s.data[0];
    size_t len = b < 0x80 ? 1 : b >= 0xc2 && b < 0xe0 ? 2 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xf0 && b < 0xf5 ? 4 : 0;
    if (b == 0 || len == 0 || len > s.len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s.data[i] & 0xc0) != 0x80)
            return 0;
    uint8_t next = len > 1 ? s.data[1] : 0;
    bool overlong = (b == 0xe0 && next < 0xa0) || (b == 0xf0 && next < 0x90);
    bool surrogate = b == 0xed && next > 0x9f;
    bool past_end = b == 0xf4 && next > 0x8f;
    return overlong || surrogate || past_end ? 0 : len;
}

uint32_t utf8_character(const uint8_t *sequence, size_t len)
{
    static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t character = sequence[0] & first_bits[len];
    for (size_t i = 1; i < len; i++)
        character = character << 6 | (sequence[i] & 0x3f);
    return character;
}

/* How many bytes at the start of `s` are ASCII and not NUL: as signed numbers, above 0. */
static size_t ascii_prefix(struct slice s)
{
    const uint8_t *at = s.data, *end = s.data + s.len;
    for (; end - at >= 2 * WIDE_BYTES; at += 2 * WIDE_BYTES) {
        const wide_signed a = (wide_signed)wide_load(at), b = (wide_signed)wide_load(at + WIDE_BYTES);
        if (!wide_is_full((wide)((a > 0) & (b > 0))))
            break;
    }
    for (; end - at >= 8; at += 8) {
        const uint64_t word = word_load(at), strange = word_has_less(word, 1) | (word & WORD_EACH(0x80));
        if (strange)
            return (size_t)(at - s.data) + word_first(strange);
    }
    while (at < end && *at && *at < 0x80)
        at++;
    return (size_t)(at - s.data);
}

/* How many bytes at the start of `s` are whole sequences. */
static size_t valid_prefix(struct slice s)
{
    size_t at = s.len ? ascii_prefix(s) : 0;
    while (at < s.len) {
        const struct slice rest = slice_of(s.data + at, s.len - at);
        const size_t len = rest.data[0] < 0x80 ? ascii_prefix(rest) : utf8_sequence(rest);
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

bool utf8_is_valid(struct slice s) { return valid_prefix(s) == s.len; }

void utf8_append_repaired(struct buffer *out, struct slice s)
{
    while (s.len) {
        size_t good = valid_prefix(s), bad = good < s.len;
        buffer_append(out, s.data, good);
        if (bad)
            buffer_append_str(out, "\xef\xbf\xbd");
        s = slice_of(s.data + good + bad, s.len - good - bad);
    }
}
