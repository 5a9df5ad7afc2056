#include "client/cli/top/keys.h"

#include <string.h>

#include "common/cmdline/cmdline.h"

static const struct {
    const char *bytes; /* behind the escape */
    int key;
} sequences[] = {
    {"[A", KEY_UP},         {"[B", KEY_DOWN},     {"[C", KEY_RIGHT}, {"[D", KEY_LEFT}, {"OA", KEY_UP},
    {"OB", KEY_DOWN},       {"OC", KEY_RIGHT},    {"OD", KEY_LEFT},  {"[H", KEY_HOME}, {"[F", KEY_END},
    {"OH", KEY_HOME},       {"OF", KEY_END},      {"[1~", KEY_HOME}, {"[4~", KEY_END}, {"[5~", KEY_PAGE_UP},
    {"[6~", KEY_PAGE_DOWN}, {"[Z", KEY_BACK_TAB}, {"[7~", KEY_HOME}, {"[8~", KEY_END},
};

/* Bytes of a sequence from its escape on; 0: its end has not come. */
static size_t sequence_length(const char *bytes, size_t len)
{
    if (len < 2)
        return 0;
    if (bytes[1] == 'O')
        return len < 3 ? 0 : 3;
    if (bytes[1] != '[')
        return 1; /* an escape, and another key behind it */
    for (size_t i = 2; i < len; i++)
        if (bytes[i] >= 0x40 && bytes[i] <= 0x7e)
            return i + 1;
    return len > 16 ? len : 0;
}

int key_next(const char *bytes, size_t len, bool is_all, size_t *ret_used)
{
    *ret_used = len ? 1 : 0;
    if (!len || bytes[0] != KEY_ESCAPE)
        return !len ? KEY_NONE : bytes[0] == '\n' ? KEY_ENTER : bytes[0] == 8 ? KEY_DELETE : (unsigned char)bytes[0];
    const size_t whole = sequence_length(bytes, len);
    *ret_used = whole ? whole : is_all ? 1 : 0;
    if (whole < 2)
        return *ret_used ? KEY_ESCAPE : KEY_NONE;
    for (size_t i = 0; i < ROWS(sequences); i++)
        if (strlen(sequences[i].bytes) == whole - 1 && memcmp(sequences[i].bytes, bytes + 1, whole - 1) == 0)
            return sequences[i].key;
    return KEY_NONE;
}
