/*
 * route.h - what can be asked at which path, as tables: each API is a family with a table of routes, an error form of
 * its own, and what it keeps while the gateway runs. families.c lists them.
 *
 * A pattern's parts are words or {names}; {rollout} stands for two, as a rollout's name is GROUP/NUMBER, and {rest} at
 * the end for all that is left, with its slashes, be it nothing. Of two patterns that a path fits the first is taken.
 */
#ifndef SLUICE_CLIENT_GATEWAY_ROUTE_H
#define SLUICE_CLIENT_GATEWAY_ROUTE_H

#include "common/base/buffer.h"
#include "schemas/messages/message.h"

struct http_call;
struct gateway;

enum route_access {
    ROUTE_KEYED, /* who asks is told apart by its token */
    ROUTE_OPEN   /* anybody may ask; it has no identity */
};
enum route_body {
    ROUTE_NO_BODY,    /* what comes is ignored */
    ROUTE_OBJECT,     /* a JSON object */
    ROUTE_MAY_OBJECT, /* or nothing */
    ROUTE_RAW         /* its handler's to read */
};

struct route {
    const char *method, *pattern;
    void (*run)(struct http_call *call);
    enum route_access access;
    enum route_body body;
    enum message_id message; /* of those that ask the broker one thing (api/asked.h); others: MESSAGE_COUNT */
    const char *summary;     /* of the OpenAPI description; NULL where the family has none */
};

/* One whose handler asks what it wants. */
#define ROUTE(method_, pattern_, run_, access_, body_)                                                                 \
    {                                                                                                                  \
        .method = method_, .pattern = pattern_, .run = run_, .access = access_, .body = body_,                         \
        .message = MESSAGE_COUNT                                                                                       \
    }

/* What went wrong, in any family's form. `reason` is a word (refusals.def, or the gateway's own), `field` may be "". */
struct trouble {
    int status; /* of HTTP */
    const char *reason, *field, *words;
};

struct route_family {
    const char *name; /* as --api has it */
    const struct route *routes;
    size_t count;
    /* The body of an error; its content type. */
    const char *(*write_trouble)(const struct trouble *trouble, struct buffer *ret);
    /* What it keeps; NULL where it keeps nothing. False: it cannot be, with a sentence on the log. */
    bool (*open)(struct gateway *gateway, void **ret);
    void (*close)(struct gateway *gateway, void *kept);
};

enum { ROUTE_PARAMS_MAX = 4 };
struct route_params {
    size_t count;
    struct {
        struct slice name, value; /* of the pattern, of the path */
    } of[ROUTE_PARAMS_MAX];
};

/* Whether the path fits the pattern, and what its names stand for. */
bool route_fits(const struct route *route, const char *path, struct route_params *ret);

/* {"detail": words}, as FastAPI has it. */
const char *route_write_detail(const struct trouble *trouble, struct buffer *ret);

#endif
