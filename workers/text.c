#include "workers/text.h"

/* Bytes of the character that starts at `at`; 0 if it is none. Stops at the NUL. */
static size_t character_len(const uint8_t *at)
{
    static const struct {
        uint8_t first, last, second_min, second_max;
        size_t len;
    } forms[] = {/* RFC 3629, section 4 */
                 {0x01, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                 {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (at[0] < forms[i].first || at[0] > forms[i].last)
            continue;
        if (forms[i].len > 1 && (at[1] < forms[i].second_min || at[1] > forms[i].second_max))
            return 0;
        for (size_t k = 2; k < forms[i].len; k++)
            if ((at[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].len;
    }
    return 0;
}

void text_repair(char *text)
{
    for (uint8_t *at = (uint8_t *)text; *at;) {
        size_t len = character_len(at);
        if (len == 0)
            *at = '?';
        at += len ? len : 1;
    }
}

struct slice text_cut(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);
    if (len > max)
        for (len = max; len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80; len--)
            ;
    return slice_of(text, len);
}
