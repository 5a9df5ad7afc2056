/* openapi.h - GET /api/v1/openapi.json: a description of the native API, made from its routes and from messages.def. */
#ifndef SLUICE_CLIENT_GATEWAY_API_OPENAPI_H
#define SLUICE_CLIENT_GATEWAY_API_OPENAPI_H

struct http_call;

void openapi_run(struct http_call *call);

#endif
