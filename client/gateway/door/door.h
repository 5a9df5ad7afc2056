/*
 * door.h - who and what comes in, decided on a request's head: which API and route its path means, whether it comes
 * from where a page of another site could have sent it, and who asks. The token comes as `Authorization: Bearer TOKEN`,
 * as clients of models send their keys (x-api-key, x-goog-api-key), or in the cookie that /api/v1/login sets for the
 * page. Never in a query string, which ends up in logs and histories.
 *
 * A request whose Host is no name of this gateway's, though only this machine can reach it, comes from a page whose
 * name was pointed here (DNS rebinding), and is refused; so is one whose Origin is another than its Host.
 */
#ifndef SLUICE_CLIENT_GATEWAY_DOOR_DOOR_H
#define SLUICE_CLIENT_GATEWAY_DOOR_DOOR_H

#include "client/gateway/http_call.h"

#define DOOR_COOKIE "sluice"

/* It has a route and, but for an open one, an identity; or it is answered. */
void door_admit(struct http_call *call);
/* The token that came with it, copied; false: none. */
bool door_token(const struct exchange *exchange, char *ret, size_t size);
/* There is no identity of the token, for what identities_find said. */
void door_refuse_token(struct http_call *call, int status, const char *field, const char *why);

#endif
