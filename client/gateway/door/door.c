#include "client/gateway/door/door.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "common/net/token.h"

static const char *const key_names[] = {"token", "key", "api_key", "apikey", "access_token"};
static const char *const key_headers[] = {"x-api-key", "x-goog-api-key"}; /* where clients of models put theirs */

/* ---- which route ---------------------------------------------------------------------------------- */

/* A path that is known by another method only is told which. */
static void find_route(struct http_call *call, char *allowed, size_t size)
{
    const char *method = exchange_method(call->exchange), *path = exchange_path(call->exchange);
    const struct gateway *gateway = call->gateway;
    struct route_params params;
    for (size_t f = 0; f < gateway->family_count; f++)
        for (size_t i = 0; i < gateway->families[f]->count; i++) {
            const struct route *route = &gateway->families[f]->routes[i];
            if (!route_fits(route, path, &params))
                continue;
            call->family = gateway->families[f];
            call->kept = gateway->kept[f];
            if (strcmp(route->method, method) == 0) {
                call->route = route;
                call->params = params;
                return;
            }
            const size_t len = strlen(allowed);
            snprintf(allowed + len, size - len, "%s%s", len ? ", " : "", route->method);
        }
}

static bool has_route(struct http_call *call, const char *allowed)
{
    if (call->route)
        return true;
    if (*allowed) {
        exchange_set_header(call->exchange, "Allow", allowed);
        http_call_refuse(call, 405, "method-not-allowed", "", "Method Not Allowed");
    } else {
        http_call_refuse(call, 404, "not-found", "", "Not Found");
    }
    return false;
}

/* ---- where it comes from ------------------------------------------------------------------------------ */

/* "localhost:5780", "[::1]:5780" without its port. */
static struct slice host_name(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : strchr(host, ':');
    if (end && *end == ']')
        end++;
    return slice_of(host, end ? (size_t)(end - host) : strlen(host));
}

static bool is_own_name(const struct gateway_settings *settings, struct slice name)
{
    static const char *const own[] = {"localhost", "[::1]", NULL};
    char text[256];
    const char *const *lists[] = {own, settings->hosts};
    if (name.len >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(name));
    for (size_t i = 0; i < 2; i++)
        for (const char *const *at = lists[i]; at && *at; at++)
            if (strcasecmp(*at, text) == 0)
                return true;
    return strncmp(text, "127.", 4) == 0 && strspn(text, "0123456789.") == name.len;
}

static bool comes_from_here(struct http_call *call)
{
    const char *host = exchange_header(call->exchange, "Host"), *origin = exchange_header(call->exchange, "Origin");
    char peer[EXCHANGE_ADDRESS_SIZE];
    exchange_peer_address(call->exchange, peer);
    const struct gateway_settings *settings = call->gateway->settings;
    if (settings->is_local && host && strcmp(peer, "unix") != 0 && !is_own_name(settings, host_name(host))) {
        http_call_refuse(
            call, 421, "not-this-host", "",
            "this is not %.200s: name it with --host if it is, so that no page of another site can pass for it", host);
        return false;
    }
    const char *of = origin ? strstr(origin, "://") : NULL;
    if (origin && (!host || !of || strcasecmp(of + 3, host) != 0)) {
        http_call_refuse(call, 403, "cross-origin", "", "pages of other sites may not ask here");
        return false;
    }
    return true;
}

/* ---- who asks ---------------------------------------------------------------------------------------------- */

static bool cookie_token(const char *cookies, char *ret, size_t size)
{
    const size_t name_len = strlen(DOOR_COOKIE);
    for (const char *at = cookies; at && *at; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncmp(at, DOOR_COOKIE "=", name_len + 1) != 0)
            continue;
        at += name_len + 1;
        const size_t len = strcspn(at, "; ");
        return len > 0 && len < size && snprintf(ret, size, "%.*s", (int)len, at) > 0;
    }
    return false;
}

bool door_token(const struct exchange *exchange, char *ret, size_t size)
{
    const char *bearer = exchange_header(exchange, "Authorization");
    for (size_t i = 0; !bearer && i < sizeof(key_headers) / sizeof(*key_headers); i++) {
        const char *key = exchange_header(exchange, key_headers[i]);
        if (key)
            return snprintf(ret, size, "%s", key) < (int)size;
    }
    if (!bearer)
        return cookie_token(exchange_header(exchange, "Cookie"), ret, size);
    if (strncasecmp(bearer, "Bearer", 6) != 0 || !isspace((unsigned char)bearer[6]))
        return false;
    bearer += 6 + strspn(bearer + 6, " \t");
    return snprintf(ret, size, "%s", bearer) < (int)size;
}

static bool has_key_in_query(struct http_call *call)
{
    for (size_t i = 0; i < sizeof(key_names) / sizeof(*key_names); i++)
        if (exchange_query(call->exchange, key_names[i])) {
            http_call_refuse(
                call, 400, "key-in-query", key_names[i],
                "a key in a query string ends up in logs and histories: say `Authorization: Bearer TOKEN`, and "
                "make a new key in the place of this one");
            return true;
        }
    return false;
}

static bool is_given_twice(struct http_call *call, const char *name)
{
    const bool is_twice = exchange_header_count(call->exchange, name) > 1;
    if (is_twice)
        http_call_refuse(call, 400, "duplicate-field", name, "%s is given twice", name);
    return is_twice;
}

void door_refuse_token(struct http_call *call, int status, const char *field, const char *why)
{
    http_call_refuse(call, status, status == 401 ? "unknown-key" : "queue-full", field, "%s", why);
}

static bool has_identity(struct http_call *call)
{
    char token[TOKEN_SIZE] = "";
    const char *why;
    int status;
    if (call->route->access == ROUTE_OPEN)
        return true;
    if (is_given_twice(call, "Authorization") || is_given_twice(call, key_headers[0]) ||
        is_given_twice(call, key_headers[1]))
        return false;
    const bool has_token = door_token(call->exchange, token, sizeof(token));
    call->identity = identities_find(call->gateway->identities, has_token ? token : NULL, &status, &why);
    explicit_bzero(token, sizeof(token));
    if (!call->identity)
        door_refuse_token(call, status, "", why);
    return call->identity != NULL;
}

void door_admit(struct http_call *call)
{
    char allowed[128] = "";
    find_route(call, allowed, sizeof(allowed)); /* first, so that whatever is refused is told in its API's form */
    if (comes_from_here(call) && !has_key_in_query(call) && has_route(call, allowed))
        has_identity(call);
}
