#include "workers/network/grants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static int reject(struct fail *fail, const char *text, const char *why)
{
    return fail_set(fail, -EINVAL, "--grant %.200s: %s", text, why);
}

static bool parse_port(const char *text, uint16_t *ret)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || port < 1 || port > UINT16_MAX)
        return false;
    *ret = (uint16_t)port;
    return true;
}

/* HOST:PORT, with [..] around an IPv6 address. */
static int parse_tcp(const char *target, struct grant *ret, const char *text, struct fail *fail)
{
    const char *colon = strrchr(target, ':');
    if (!colon || !parse_port(colon + 1, &ret->port))
        return reject(fail, text, "not tcp:HOST:PORT with a port in 1-65535");
    size_t len = (size_t)(colon - target);
    if (len > 2 && target[0] == '[' && target[len - 1] == ']') {
        target++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof(ret->host) || strcspn(target, " \t\n[]") < len)
        return reject(fail, text, "not a host");
    snprintf(ret->host, sizeof(ret->host), "%.*s", (int)len, target);
    return 0;
}

static int parse_unix(const char *target, struct grant *ret, const char *text, struct fail *fail)
{
    if (target[0] != '/')
        return reject(fail, text, "the socket's path is not absolute");
    if (strlen(target) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return reject(fail, text, "the socket's path is longer than 107 bytes");
    snprintf(ret->host, sizeof(ret->host), "%s", target);
    return 0;
}

static int parse_target(const char *target, struct grant *ret, const char *text, struct fail *fail)
{
    ret->is_tcp = strncmp(target, "tcp:", 4) == 0;
    if (ret->is_tcp)
        return parse_tcp(target + 4, ret, text, fail);
    if (strncmp(target, "unix:", 5) == 0)
        return parse_unix(target + 5, ret, text, fail);
    return reject(fail, text, "not NAME=unix:PATH or NAME=tcp:HOST:PORT");
}

int grants_add(struct grants *grants, const char *text, struct fail *fail)
{
    struct grant grant = {.name = ""};
    const char *equals = strchr(text, '=');
    const size_t len = equals ? (size_t)(equals - text) : 0;
    if (len < sizeof(grant.name))
        memcpy(grant.name, text, len);
    if (!equals)
        return reject(fail, text, "not NAME=unix:PATH or NAME=tcp:HOST:PORT");
    if (!task_grant_is_valid(grant.name))
        return reject(fail, text, "the name is not 1 to 32 characters of a-z, 0-9 and -, beginning with a letter");
    if (strcmp(grant.name, GRANT_MODEL) == 0)
        return reject(fail, text, "the name is that of a harness's own model");
    if (grants_find(grants, grant.name))
        return reject(fail, text, "a grant of that name exists already");
    if (grants->count == GRANTS_MAX)
        return reject(fail, text, "too many grants, at most 64");
    int code = parse_target(equals + 1, &grant, text, fail);
    if (code == 0)
        grants->items[grants->count++] = grant;
    return code;
}

const struct grant *grants_find(const struct grants *grants, const char *name)
{
    for (size_t i = 0; grants && i < grants->count; i++)
        if (strcmp(grants->items[i].name, name) == 0)
            return &grants->items[i];
    return NULL;
}

void grants_format(const struct grants *grants, char *text, size_t size)
{
    size_t len = 0;
    snprintf(text, size, "none");
    for (size_t i = 0; grants && i < grants->count && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s", i ? ", " : "", grants->items[i].name);
}
