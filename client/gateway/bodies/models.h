/*
 * models.h - bodies as FastAPI reads them into its models, and its answer to those that are none: 422 with a list of
 * what is wrong. Members that no model has are ignored.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BODIES_MODELS_H
#define SLUICE_CLIENT_GATEWAY_BODIES_MODELS_H

#include "client/gateway/http_call.h"

enum model_type { MODEL_OBJECT, MODEL_STRING, MODEL_MAY_STRING };

struct model_field {
    const char *name;
    enum model_type type; /* MAY: it may be null, or not be there */
};

/* The body of a call whose route takes it raw; the caller's. NULL: it is answered. */
json_t *model_read(struct http_call *call, const struct model_field *fields, size_t count);

#endif
