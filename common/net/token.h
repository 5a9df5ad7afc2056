/*
 * token.h - a key as one word, for where a key file cannot go, such as a header of HTTP:
 *
 *     slk.ROLE.NAME.SECRET        SECRET: the key's secret, 64 hexadecimal digits
 *
 * Whoever has it can do what the key may. Its role and name are only said: the broker goes by the key.
 */
#ifndef SLUICE_COMMON_NET_TOKEN_H
#define SLUICE_COMMON_NET_TOKEN_H

#include "common/net/keys.h"

enum { TOKEN_SIZE = 4 + 8 + KEY_NAME_SIZE + 1 + 64 + 1 };

/* -EINVAL: it has no secret, or one that is no CURVE key. */
int token_format(const struct key *key, char ret[TOKEN_SIZE], struct fail *fail);
/* The key without its broker's. -EINVAL: it is no token. No sentence repeats any of it. */
int token_parse(const char *text, struct key *ret, struct fail *fail);

#endif
