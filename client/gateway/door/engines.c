#include "client/gateway/door/engines.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/url.h"

enum { ADDRESS_BYTES = 16, RULE_MAX = 300 };

struct rule {
    char host[URL_HOST_MAX + 1];
    unsigned port;                /* 0: any */
    uint8_t bytes[ADDRESS_BYTES]; /* IPv4 as ::ffff:a.b.c.d */
    int bits;                     /* -1: it is a name */
};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* what stands before an IPv4 address */

static bool read_address(const char *text, uint8_t ret[ADDRESS_BYTES], bool *is_v4)
{
    *is_v4 = inet_pton(AF_INET, text, ret + sizeof(mapped)) == 1;
    if (*is_v4)
        memcpy(ret, mapped, sizeof(mapped));
    return *is_v4 || inet_pton(AF_INET6, text, ret) == 1;
}

/* Digits alone; -1: there are none, or others. */
static long number_of(const char *text, long max)
{
    const size_t len = strlen(text);
    const long number = len > 0 && len <= 5 && strspn(text, "0123456789") == len ? atol(text) : -1;
    return number <= max ? number : -1;
}

/* "host:port", "[v6]:port", "host", "v6": splits the port off. */
static bool split_port(char *text, const char **host, unsigned *port)
{
    char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    char *colon = end ? (end[1] == ':' ? end + 1 : NULL) : strchr(text, ':');
    if (!end && colon && strchr(colon + 1, ':'))
        colon = NULL; /* an IPv6 address */
    *port = 0;
    *host = text[0] == '[' ? text + 1 : text;
    if (end)
        *end = '\0';
    if (!colon)
        return true;
    const long number = number_of(colon + 1, UINT16_MAX);
    if (!end)
        *colon = '\0';
    *port = number > 0 ? (unsigned)number : 0;
    return number > 0;
}

static bool read_rule(const char *text, struct rule *ret)
{
    char copy[RULE_MAX];
    const char *host;
    bool is_v4;
    if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
        return false;
    char *slash = strchr(copy, '/');
    long bits = -1;
    if (slash) {
        *slash = '\0';
        bits = number_of(slash + 1, 128);
        if (bits < 0)
            return false;
    }
    if (!split_port(copy, &host, &ret->port) || !*host || strlen(host) >= sizeof(ret->host))
        return false;
    snprintf(ret->host, sizeof(ret->host), "%s", host);
    ret->bits = -1;
    if (!read_address(host, ret->bytes, &is_v4))
        return !slash && strcspn(host, " \t\n/@?#") == strlen(host);
    if (is_v4 && bits > 32)
        return false;
    ret->bits = bits < 0 ? 128 : is_v4 ? (int)bits + 96 : (int)bits;
    return true;
}

static bool is_within(const struct rule *rule, const uint8_t address[ADDRESS_BYTES])
{
    for (int i = 0; i < rule->bits; i++)
        if (((rule->bytes[i / 8] ^ address[i / 8]) >> (7 - i % 8)) & 1)
            return false;
    return true;
}

static bool fits(const struct rule *rule, const struct url *url)
{
    uint8_t address[ADDRESS_BYTES];
    bool is_v4;
    if (rule->port && rule->port != url->port)
        return false;
    if (rule->bits < 0)
        return strcasecmp(rule->host, url->host) == 0;
    return read_address(url->host, address, &is_v4) && is_within(rule, address);
}

static bool is_loopback(const struct url *url)
{
    static const char *const own[] = {"127.0.0.0/8", "::1", "localhost"};
    struct rule rule;
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (read_rule(own[i], &rule) && fits(&rule, url))
            return true;
    return false;
}

bool address_allow(const char *const *rules, const char *text, const char *option, struct fail *fail)
{
    struct url url;
    struct rule rule;
    if (url_parse(slice_from_str(text), &url, fail) < 0)
        return false;
    for (; *rules; rules++)
        if (strcmp(*rules, "loopback") == 0 ? is_loopback(&url) : read_rule(*rules, &rule) && fits(&rule, &url))
            return true;
    fail_set(fail, -EACCES, "%s is not where the operator lets the gateway send anything: that is %s HOST[:PORT]",
             url.host, option);
    return false;
}

static bool take_bytes(const struct sockaddr *address, uint8_t ret[ADDRESS_BYTES])
{
    if (address->sa_family == AF_INET) {
        memcpy(ret, mapped, sizeof(mapped));
        memcpy(ret + sizeof(mapped), &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(ret, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, ADDRESS_BYTES);
    }
    return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

static bool is_among(const char *const *ranges, const uint8_t address[ADDRESS_BYTES])
{
    struct rule rule;
    for (; *ranges; ranges++)
        if (read_rule(*ranges, &rule) && rule.bits >= 0 && is_within(&rule, address))
            return true;
    return false;
}

bool address_may_be_reached(const char *const *rules, const char *text, const struct sockaddr *address)
{
    static const char *const loopback[] = {"127.0.0.0/8", "::1", NULL};
    static const char *const near[] = {"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4",
                                       "::/127",    "fe80::/10",   "ff00::/8",       NULL};
    uint8_t bytes[ADDRESS_BYTES];
    struct url url;
    struct rule rule;
    if (!take_bytes(address, bytes) || url_parse(slice_from_str(text), &url, NULL) < 0)
        return false;
    for (; *rules; rules++) {
        const bool is_read = read_rule(*rules, &rule);
        const bool is_loopback_rule = strcmp(*rules, "loopback") == 0 ||
                                      (is_read && strcasecmp(rule.host, "localhost") == 0);
        if (is_loopback_rule                                   ? is_among(loopback, bytes)
            : !is_read || (rule.port && rule.port != url.port) ? false
            : rule.bits >= 0                                   ? is_within(&rule, bytes)
                             : strcasecmp(rule.host, url.host) == 0 && !is_among(near, bytes))
            return true;
    }
    return false;
}

bool engines_allow(const char *const *rules, const char *text, struct fail *fail)
{
    if (address_allow(rules, text, "--engine", fail))
        return true;
    if (fail->code == -EACCES)
        fail_wrap(fail, "no engine may be registered there over HTTP");
    return false;
}

int engines_rule_check(const char *text, struct fail *fail)
{
    struct rule rule;
    if (strcmp(text, "loopback") == 0 || read_rule(text, &rule))
        return 0;
    return fail_set(fail, -EINVAL, "'%.200s' is no HOST, HOST:PORT or ADDRESS/BITS", text);
}
