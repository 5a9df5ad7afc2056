#include "broker/net/lane_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- IP addresses: an IPv4 one is the IPv6 one it is mapped to ------------------------- */

struct ip {
    uint8_t bytes[16];
};

enum { MAPPED_BITS = 96 };

static bool ip_parse(const char *text, struct ip *ret)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char plain[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "%"); /* the scope of a link-local address names an interface */
    if (len >= sizeof(plain))
        return false;
    memcpy(plain, text, len);
    plain[len] = '\0';
    if (inet_pton(AF_INET6, plain, ret->bytes) == 1)
        return true;
    memcpy(ret->bytes, mapped, sizeof(mapped));
    return !text[len] && inet_pton(AF_INET, plain, ret->bytes + sizeof(mapped)) == 1;
}

static bool ip_is_within(const struct ip *ip, const struct ip *net, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp(ip->bytes, net->bytes, whole) == 0 &&
           (!rest || (ip->bytes[whole] & mask) == (net->bytes[whole] & mask));
}

static bool ip_equal(const struct ip *a, const struct ip *b) { return ip_is_within(a, b, 128); }

/* `text` is what it was parsed from: an IPv6 address keeps its scope. */
static void ip_format(const struct ip *ip, const char *text, char ret[LANE_HOST_SIZE])
{
    struct ip v4;
    ip_parse("0.0.0.0", &v4);
    if (ip_is_within(ip, &v4, MAPPED_BITS))
        inet_ntop(AF_INET, ip->bytes + MAPPED_BITS / 8, ret, LANE_HOST_SIZE);
    else
        snprintf(ret, LANE_HOST_SIZE, "%s", text);
}

/* 0.0.0.0 and :: are no address of anybody; connecting there leads to this machine. */
static bool ip_is_unspecified(const struct ip *ip)
{
    struct ip v4, v6;
    return (ip_parse("0.0.0.0", &v4) && ip_equal(ip, &v4)) || (ip_parse("::", &v6) && ip_equal(ip, &v6));
}

static bool ip_is_loopback(const struct ip *ip)
{
    struct ip v4, v6;
    return (ip_parse("127.0.0.0", &v4) && ip_is_within(ip, &v4, MAPPED_BITS + 8)) ||
           (ip_parse("::1", &v6) && ip_equal(ip, &v6));
}

/* ---- names --------------------------------------------------------------------------------- */

/* Such as getaddrinfo would take for an address: "127.1", "0x7f000001". */
static bool ends_in_number(const char *name)
{
    const char *dot = strrchr(name, '.'), *label = dot ? dot + 1 : name;
    if (label[0] == '0' && label[1] == 'x')
        return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
    return label[strspn(label, "0123456789")] == '\0';
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t len = strlen(text);
    return len >= 1 && len <= 253 && strspn(text, letters) == len && text[0] != '-' && text[0] != '.' &&
           !strstr(text, "..") && !ends_in_number(text);
}

static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* A number of at most five digits; false if it is none, or not within. */
static bool number_parse(const char *text, unsigned min, unsigned max, unsigned *ret)
{
    size_t len = strlen(text);
    if (len < 1 || len > 5 || strspn(text, "0123456789") != len)
        return false;
    *ret = (unsigned)strtoul(text, NULL, 10);
    return *ret >= min && *ret <= max;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

/* "[::1]:5", "127.0.0.1:5" or "node7:5" as a host without brackets, and the port's text. */
static char *split_port(char *text, char **ret_host)
{
    char *end = text[0] == '[' ? strchr(text, ']') : strchr(text, ':');
    *ret_host = text[0] == '[' ? text + 1 : text;
    if (!end)
        return NULL;
    if (text[0] == '[')
        *end++ = '\0';
    if (*end != ':')
        return NULL;
    *end = '\0';
    return end + 1;
}

static int parse_tcp(char *text, const char *endpoint, struct lane_address *ret, struct fail *fail)
{
    struct ip ip;
    unsigned port;
    char *host, *port_text = split_port(text, &host);
    bool is_v6 = text[0] == '[';
    if (!port_text || !number_parse(port_text, 1, 65535, &port))
        return fail_set(fail, -EINVAL, "%s is not tcp://HOST:PORT with a port from 1 to 65535", endpoint);
    lower(host);
    bool is_ip = ip_parse(host, &ip) && (strchr(host, ':') != NULL) == is_v6;
    if (is_ip && ip_is_unspecified(&ip))
        return fail_set(fail, -EINVAL, "%s is not a host's address", endpoint);
    if (!is_ip && (is_v6 || !is_name(host)))
        return fail_set(fail, -EINVAL, "%s names neither an address nor a host", endpoint);
    ret->is_name = !is_ip;
    ret->port = (uint16_t)port;
    snprintf(ret->host, sizeof(ret->host), "%s", host);
    return 0;
}

int lane_address_parse(struct slice endpoint, struct lane_address *ret, struct fail *fail)
{
    enum { PREFIX = 6 }; /* of either kind */
    char text[LANE_HOST_SIZE + 1], whole[LANE_HOST_SIZE + 1];
    *ret = (struct lane_address){0};
    if (endpoint.len <= PREFIX || endpoint.len > LANE_HOST_SIZE || memchr(endpoint.data, 0, endpoint.len))
        return fail_set(fail, -EINVAL, "it is not a tcp:// or ipc:// endpoint");
    memcpy(whole, endpoint.data, endpoint.len);
    whole[endpoint.len] = '\0';
    strcpy(text, whole);
    if (strncmp(text, "tcp://", PREFIX) == 0)
        return parse_tcp(text + PREFIX, whole, ret, fail);
    ret->is_ipc = strncmp(text, "ipc://", PREFIX) == 0;
    if (!ret->is_ipc || text[PREFIX] != '/')
        return fail_set(fail, -EINVAL, "%s is neither tcp://HOST:PORT nor ipc:///PATH", whole);
    snprintf(ret->host, sizeof(ret->host), "%s", text + PREFIX);
    return 0;
}

void lane_address_format(const struct lane_address *address, char ret[LANE_ENDPOINT_SIZE])
{
    const char *form = strchr(address->host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u";
    if (address->is_ipc)
        snprintf(ret, LANE_ENDPOINT_SIZE, "ipc://%s", address->host);
    else
        snprintf(ret, LANE_ENDPOINT_SIZE, form, address->host, address->port);
}

/* ---- the operator's list ---------------------------------------------------------------------- */

/* One item of the list. */
struct item {
    bool is_name;
    struct ip net;
    unsigned bits;
    char text[LANE_HOST_SIZE];
};

/* "10.0.0.0/8", "fd00::7" or "node7.example". */
static bool item_parse(struct item *item)
{
    char head[LANE_HOST_SIZE];
    const char *slash = strchr(item->text, '/');
    snprintf(head, sizeof(head), "%.*s", (int)strcspn(item->text, "/"), item->text);
    item->is_name = !ip_parse(head, &item->net);
    item->bits = 128;
    if (item->is_name || !slash)
        return !item->is_name || is_name(item->text);
    unsigned first = strchr(head, ':') ? 0 : MAPPED_BITS, bits;
    bool is_good = number_parse(slash + 1, 0, 128 - first, &bits);
    item->bits = is_good ? first + bits : 128;
    return is_good;
}

/* The next item of *list, which goes behind it. False at the end; *ret_good: it can be read. */
static bool list_next(const char **list, struct item *item, bool *ret_good)
{
    *list += strspn(*list, ", ");
    size_t len = strcspn(*list, ", ");
    if (len == 0)
        return false;
    *item = (struct item){0};
    snprintf(item->text, sizeof(item->text), "%.*s", (int)len, *list);
    *list += len;
    lower(item->text);
    *ret_good = len < sizeof(item->text) && item_parse(item);
    return true;
}

int lane_rules_check(const struct lane_rules *rules, struct fail *fail)
{
    const char *list = rules->list ? rules->list : "";
    struct item item;
    bool is_good;
    while (list_next(&list, &item, &is_good))
        if (!is_good)
            return fail_set(fail, -EINVAL,
                            "'%.100s' is neither an address, a range of addresses (10.0.0.0/8) nor a host's "
                            "name",
                            item.text);
    return 0;
}

static bool list_has(const struct lane_rules *rules, const struct lane_address *address, const struct ip *ip)
{
    const char *list = rules->list ? rules->list : "";
    struct item item;
    bool is_good;
    while (list_next(&list, &item, &is_good))
        if (is_good && item.is_name == address->is_name &&
            (item.is_name ? strcmp(item.text, address->host) == 0 : ip_is_within(ip, &item.net, item.bits)))
            return true;
    return false;
}

/* ---- settling ------------------------------------------------------------------------------------ */

static int settle_ipc(const struct lane_address *address, const struct lane_rules *rules, struct fail *fail)
{
    size_t len = rules->ipc_dir ? strlen(rules->ipc_dir) : 0;
    if (!rules->ipc_dir)
        return fail_set(fail, -EACCES,
                        "its lane is ipc://%s, and this broker is not on --ipc: give the worker the "
                        "broker's tcp:// address",
                        address->host);
    while (len > 1 && rules->ipc_dir[len - 1] == '/')
        len--;
    const char *rest = address->host + len;
    if (strncmp(address->host, rules->ipc_dir, len) == 0 && rest[0] == '/' && rest[1] && !strchr(rest + 1, '/'))
        return 0;
    return fail_set(fail, -EACCES, "its lane is ipc://%s, which is not in the directory of the broker's --ipc, %s",
                    address->host, rules->ipc_dir);
}

int lane_address_settle(struct lane_address *address, const struct lane_rules *rules, const char *peer,
                        struct fail *fail)
{
    struct ip ip = {0}, from;
    bool has_peer = peer && ip_parse(peer, &from);
    if (address->is_ipc)
        return settle_ipc(address, rules, fail);
    if (!address->is_name)
        ip_parse(address->host, &ip);
    bool is_its_own = address->is_name || (has_peer ? ip_equal(&ip, &from) : ip_is_loopback(&ip));
    if (list_has(rules, address, &ip))
        return 0;
    if (!is_its_own)
        return fail_set(fail, -EACCES,
                        "its lane is at %s and its connection comes from %s: give the broker --lanes %s, "
                        "or the worker --advertise %s",
                        address->host, has_peer ? peer : "this machine", address->host, has_peer ? peer : "127.0.0.1");
    if (has_peer)
        ip_format(&from, peer, address->host);
    else if (address->is_name)
        strcpy(address->host, "127.0.0.1");
    address->is_name = false;
    return 0;
}
