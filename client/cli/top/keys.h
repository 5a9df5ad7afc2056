/* keys.h - the bytes that a terminal sends, as keys. Pure. */
#ifndef SLUICE_CLIENT_CLI_TOP_KEYS_H
#define SLUICE_CLIENT_CLI_TOP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum key { /* below 256: that byte */
           KEY_NONE = 0,
           KEY_TAB = '\t',
           KEY_ENTER = '\r',
           KEY_ESCAPE = 27,
           KEY_DELETE = 127,
           KEY_UP = 256,
           KEY_DOWN,
           KEY_LEFT,
           KEY_RIGHT,
           KEY_PAGE_UP,
           KEY_PAGE_DOWN,
           KEY_HOME,
           KEY_END,
           KEY_BACK_TAB
};

/*
 * The key that bytes[0..len) begin with; *ret_used: its bytes. A sequence that is not known is KEY_NONE. 0 used: more
 * bytes must come, unless `is_all`, where an escape is the key itself.
 */
int key_next(const char *bytes, size_t len, bool is_all, size_t *ret_used);

#endif
