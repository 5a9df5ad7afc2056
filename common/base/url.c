#include "common/base/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

/* ---- characters (RFC 3986) ----------------------------------------------------------------- */

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static bool is_alphanumeric(uint8_t c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static int hex_of(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether all of it is unreserved, %XX of no control character, or one of `more`. */
static bool is_made_of(struct slice text, const char *more)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_of(text.data[i + 1]) : -1;
            int low = high >= 0 ? hex_of(text.data[i + 2]) : -1;
            if (low < 0 || high < 2 || (high == 7 && low == 15))
                return false;
            i += 2;
        } else if (!is_alphanumeric(c) && (c == '\0' || !strchr("-._~", c)) && (c == '\0' || !strchr(more, c))) {
            return false;
        }
    }
    return true;
}

/* Up to the first of `stops`, which is left in *text with what follows. */
static struct slice take_until(struct slice *text, const char *stops)
{
    size_t len = 0;
    while (len < text->len && (text->data[len] == '\0' || !strchr(stops, text->data[len])))
        len++;
    struct slice taken = slice_of(text->data, len);
    *text = slice_of(text->data + len, text->len - len);
    return taken;
}

static bool skip(struct slice *text, const char *word)
{
    size_t len = strlen(word);
    if (text->len < len || memcmp(text->data, word, len) != 0)
        return false;
    *text = slice_of(text->data + len, text->len - len);
    return true;
}

static void copy(char *ret, struct slice text) /* which is at most URL_MAX long */
{
    if (text.len)
        memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
}

/* ---- its parts ------------------------------------------------------------------------------ */

/* Reads host[:port] into *ret; NULL, or what is wrong. */
static const char *take_host(struct slice *left, struct slice *ret_host)
{
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    if (!skip(left, "[")) {
        *ret_host = take_until(left, ":");
        return NULL;
    }
    *ret_host = take_until(left, "]");
    if (!skip(left, "]"))
        return "the '[' of its host is not closed";
    if (ret_host->len >= sizeof(text))
        return "what is in brackets is not an IPv6 address";
    copy(text, *ret_host);
    return inet_pton(AF_INET6, text, &address) == 1 ? NULL : "what is in brackets is not an IPv6 address";
}

static bool is_name(struct slice host)
{
    size_t label = 0;
    for (size_t i = 0; i < host.len; i++) {
        if (host.data[i] != '.' && host.data[i] != '-' && host.data[i] != '_' && !is_alphanumeric(host.data[i]))
            return false;
        if (label == 0 && (host.data[i] == '.' || host.data[i] == '-'))
            return false;
        label = host.data[i] == '.' ? 0 : label + 1;
    }
    return true;
}

/* A name whose last part is a number is meant as an address. */
static bool is_address(struct slice host)
{
    struct in_addr address;
    char text[URL_HOST_MAX + 1];
    size_t at = host.len;
    while (at > 0 && is_digit(host.data[at - 1]))
        at--;
    if (at == host.len || (at > 0 && host.data[at - 1] != '.'))
        return true;
    copy(text, host);
    return inet_pton(AF_INET, text, &address) == 1;
}

static const char *check_host(struct slice host)
{
    if (host.len == 0)
        return "it has no host";
    if (host.len > URL_HOST_MAX)
        return "its host is longer than 253 characters";
    if (memchr(host.data, ':', host.len))
        return NULL; /* in brackets: an IPv6 address, and shown to be one */
    if (!is_name(host))
        return "its host has a character that is not allowed in one";
    return is_address(host) ? NULL : "its host is a number and not an IPv4 address";
}

static const char *take_port(struct slice *left, uint16_t *ret)
{
    unsigned long port = 0;
    if (left->len == 0)
        return NULL;
    if (!skip(left, ":"))
        return "what follows its host is neither a port nor a path";
    for (size_t i = 0; i < left->len && port <= UINT16_MAX; i++)
        port = is_digit(left->data[i]) ? port * 10 + (left->data[i] - '0') : UINT16_MAX + 1UL;
    if (port == 0 || port > UINT16_MAX || left->data[0] == '0')
        return "its port is not from 1 to 65535";
    *ret = (uint16_t)port;
    return NULL;
}

/* Whether url_parse would take these as credentials. */
static bool credentials_are_valid(struct slice text)
{
    return text.len > 0 && text.len <= URL_MAX && is_made_of(text, "!$&'()*+,;=:");
}

/* [user[:password]@]host[:port]; NULL, or what is wrong. */
static const char *read_authority(struct slice left, struct url *url, struct slice *ret_place)
{
    struct slice before = left, user = take_until(&left, "@"), host;
    if (left.len == 0) {
        left = before;
    } else {
        skip(&left, "@");
        if (memchr(left.data, '@', left.len) || !credentials_are_valid(user))
            return "what is before its '@' is not user[:password]: characters such as @ / ? # % are "
                   "written %40 %2F "
                   "%3F %23 %25 there";
        copy(url->credentials, user);
    }
    *ret_place = left;
    const char *why = take_host(&left, &host);
    if (!why && !(why = check_host(host)))
        why = take_port(&left, &url->port);
    if (!why)
        copy(url->host, host);
    return why;
}

/* What other programs call a base URL ends in /v1: here each call adds it. */
static bool names_endpoint(struct slice path)
{
    static const char *const ends[] = {"/v1", "/v1/models", "/v1/completions", "/v1/chat/completions"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        const size_t len = strlen(ends[i]);
        if (path.len >= len && memcmp(path.data + path.len - len, ends[i], len) == 0)
            return true;
    }
    return false;
}

static const char *check_path(struct slice path, struct slice behind)
{
    if (behind.len)
        return behind.data[0] == '?' ? "it has a query: a base URL has none, as paths are appended to it"
                                     : "it has a fragment, which is never sent to a server";
    if (memchr(path.data, '@', path.len))
        return "an '@' follows its host: in a user or password a '/' is written %2F, and in a "
               "path an '@' is %40";
    return is_made_of(path, "!$&'()*+,;=:/") ? NULL : "its path has a character that is not allowed in one";
}

/* ---- the whole ------------------------------------------------------------------------------ */

static const char *read_url(struct slice text, struct url *url)
{
    bool is_https = text.len > 5 && memcmp(text.data, "https:", 6) == 0;
    struct slice left = text, place;
    if (text.len > URL_MAX)
        return "it is longer than 256 characters";
    if (!skip(&left, is_https ? "https://" : "http://"))
        return "it begins with neither http:// nor https://";
    url->port = is_https ? 443 : 80;
    struct slice authority = take_until(&left, "/?#");
    struct slice path = take_until(&left, "?#");
    const char *why = check_path(path, left);
    if (!why)
        why = read_authority(authority, url, &place);
    if (why)
        return why;
    while (path.len && path.data[path.len - 1] == '/')
        path.len--;
    if (names_endpoint(path))
        return "leave /v1 and what follows it out: it is added to every call";
    snprintf(url->base, sizeof(url->base), "%s%.*s%.*s", is_https ? "https://" : "http://", SLICE_ARG(place),
             SLICE_ARG(path));
    return NULL;
}

int url_parse(struct slice text, struct url *ret, struct fail *fail)
{
    struct url url = {0};
    const char *why = read_url(text, &url);
    if (why)
        return fail_set(fail, -EINVAL, "%s", why);
    *ret = url;
    return 0;
}

struct slice url_shown(struct slice text)
{
    size_t at = text.len;
    while (at > 0 && text.data[at - 1] != '@')
        at--;
    return slice_of(text.data + at, text.len - at);
}
