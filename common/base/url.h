/*
 * url.h - base URLs of engines: http[s]://[user[:password]@]host[:port][/path], and nothing else. What follows
 * is put behind the path ("/health"), so that a query or a fragment has no place.
 *
 * Credentials are taken out as the URL is read: `base` is the engine's name everywhere, and is shown; what stands
 * before the '@' is a secret, and no reason that is given here quotes it.
 */
#ifndef SLUICE_COMMON_BASE_URL_H
#define SLUICE_COMMON_BASE_URL_H

#include "common/base/fail.h"
#include "common/base/slice.h"

enum { URL_MAX = 256, URL_HOST_MAX = 253 };

struct url {
    char base[URL_MAX + 1];        /* without credentials, without slashes at its end */
    char credentials[URL_MAX + 1]; /* user[:password], percent-encoded as they were given; "": none */
    char host[URL_HOST_MAX + 1];   /* an IPv6 address without its brackets */
    uint16_t port;                 /* 80 or 443 where none is given */
};

/* 0, or -EINVAL with the reason; *ret is written only on success. */
int url_parse(struct slice text, struct url *ret, struct fail *fail);
/* Of a URL that may be none, what may be shown: all that is behind its last '@'. */
struct slice url_shown(struct slice text);

#endif
