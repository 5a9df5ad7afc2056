/*
 * served.h - what GET /v1/models says of the first model a server has: vLLM, SGLang and every
 * server of OpenAI's protocol answer it, the first two with the context's size.
 */
#ifndef SLUICE_WORKERS_SERVED_H
#define SLUICE_WORKERS_SERVED_H

#include <jansson.h>

#include "workers/engines/dialect.h"

/* A GET's answer. -ENOTSUP: no such route, or no JSON there. */
int served_get(struct engine *engine, const char *path, json_t **ret, struct fail *fail);
/* facts->model and context_tokens (0: it does not say); awaits. -ENOTSUP: no such route. */
int served_model(struct engine *engine, struct engine_facts *facts, struct fail *fail);
/* The digest of what the route says of the model but for the weights in it. */
int served_digest(struct engine *engine, char model_digest[80], struct fail *fail);
/* The digest of these members of an object. */
int digest_members(const json_t *object, const char *const *names, size_t count, char ret[80],
                   struct fail *fail);

#endif
