#include "common/base/utf8.h"

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

/* How many bytes at the start of `s` are ASCII and not NUL; most are looked at eight at a time. */
static size_t ascii_prefix(struct slice s)
{
    size_t at = 0;
    for (uint64_t word; at + sizeof(word) <= s.len; at += sizeof(word)) {
        memcpy(&word, s.data + at, sizeof(word));
        if ((word | (word - 0x0101010101010101u)) & 0x8080808080808080u)
            break;
    }
    while (at < s.len && s.data[at] > 0 && s.data[at] < 0x80)
        at++;
    return at;
}

/* How many bytes at the start of `s` are whole sequences. */
static size_t valid_prefix(struct slice s)
{
    size_t at = ascii_prefix(s), len;
    while (at < s.len && (len = utf8_sequence(slice_of(s.data + at, s.len - at))) > 0)
        at += len;
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
