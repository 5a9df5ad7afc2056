#include "workers/engines/utf8.h"

/* RFC 3629, section 4: the bounds of the first two bytes of each form. */
static const struct form {
    uint8_t first, last, second_min, second_max;
    size_t len;
} forms[] = {
    {0x01, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static const struct form *form_find(uint8_t lead)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (lead >= forms[i].first && lead <= forms[i].last)
            return &forms[i];
    return NULL;
}

/* Bytes of the character at the start of text; 0 when it starts with none. */
static size_t character_len(struct slice text)
{
    const struct form *form = form_find(text.data[0]);
    if (!form || form->len > text.len)
        return 0;
    if (form->len > 1 && (text.data[1] < form->second_min || text.data[1] > form->second_max))
        return 0;
    for (size_t i = 2; i < form->len; i++)
        if ((text.data[i] & 0xc0) != 0x80)
            return 0;
    return form->len;
}

bool utf8_repair(struct slice text, struct buffer *out)
{
    for (size_t at = 0; at < text.len;) {
        size_t len = character_len(slice_of(text.data + at, text.len - at));
        if (len > 0)
            buffer_append(out, text.data + at, len);
        else
            buffer_append_str(out, "\xef\xbf\xbd");
        at += len ? len : 1;
    }
    return !out->failed;
}

bool utf8_is_cut(struct slice text)
{
    for (size_t back = 1; back <= 4 && back <= text.len; back++) {
        uint8_t byte = text.data[text.len - back];
        size_t needed = (byte & 0xe0) == 0xc0   ? 2
                        : (byte & 0xf0) == 0xe0 ? 3
                        : (byte & 0xf8) == 0xf0 ? 4
                                                : 0;
        if (needed > back)
            return true;
    }
    return false;
}
