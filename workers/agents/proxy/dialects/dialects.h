/* dialects.h - the dialects that are known here, by path and by name, and what they have in common. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_DIALECTS_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_DIALECTS_H

#include "workers/agents/proxy/dialects/dialect.h"

extern const struct dialect dialect_chat, dialect_responses, dialect_anthropic, dialect_google;

/* NULL: the path is nobody's. */
const struct dialect *dialect_find(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream,
                                   struct slice *model);
/* A word of `dialect` or NULL. */
const struct dialect *dialect_named(const char *name);
/* GET /v1/models, for all dialects. */
void dialect_write_models(const char *model, uint64_t context_tokens, int64_t created, struct buffer *out);

#endif
