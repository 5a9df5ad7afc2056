#include "common/net/token.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#define PREFIX "slk."
enum { SECRET_BYTES = 32, SECRET_DIGITS = 2 * SECRET_BYTES };

int token_format(const struct key *key, char ret[TOKEN_SIZE], struct fail *fail)
{
    uint8_t secret[SECRET_BYTES];
    if (strlen(key->secret_text) != KEY_TEXT_SIZE - 1 || !zmq_z85_decode(secret, key->secret_text))
        return fail_set(fail, -EINVAL, "the key of %s holds no secret", key->name);
    int len = snprintf(ret, TOKEN_SIZE, PREFIX "%s.%s.", key_role_name(key->role), key->name);
    for (size_t i = 0; i < SECRET_BYTES; i++)
        len += snprintf(ret + len, TOKEN_SIZE - (size_t)len, "%02x", secret[i]);
    return 0;
}

static int digit_of(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static bool read_secret(const char *text, struct key *ret)
{
    uint8_t secret[SECRET_BYTES];
    if (strlen(text) != SECRET_DIGITS)
        return false;
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        secret[i] = (uint8_t)(high << 4 | low);
    }
    return zmq_z85_encode(ret->secret_text, secret, SECRET_BYTES) &&
           zmq_curve_public(ret->public_text, ret->secret_text) == 0;
}

/* The name may hold dots, the role and the secret hold none. */
static bool read_parts(const char *text, struct key *ret)
{
    char role[16];
    const char *name = strchr(text, '.'), *secret = strrchr(text, '.');
    if (!name || secret <= name || (size_t)(name - text) >= sizeof(role) ||
        (size_t)(secret - name - 1) >= sizeof(ret->name))
        return false;
    snprintf(role, sizeof(role), "%.*s", (int)(name - text), text);
    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(secret - name - 1), name + 1);
    return key_role_parse(role, &ret->role) && key_name_is_valid(ret->name) && read_secret(secret + 1, ret);
}

int token_parse(const char *text, struct key *ret, struct fail *fail)
{
    memset(ret, 0, sizeof(*ret));
    if (strncmp(text, PREFIX, strlen(PREFIX)) == 0 && read_parts(text + strlen(PREFIX), ret))
        return 0;
    key_wipe(ret);
    return fail_set(fail, -EINVAL, "it is no token, which begins with " PREFIX " (`sluice keys token FILE`)");
}
