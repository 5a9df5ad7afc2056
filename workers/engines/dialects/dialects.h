/* dialects.h - those that are known here, in the order in which a server is tried for them. */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_DIALECTS_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_DIALECTS_H

#include "workers/engines/server/dialect.h"

extern const struct dialect dialect_llama, dialect_sglang, dialect_vllm, dialect_openai, dialect_generate;

extern const struct dialect *const engine_dialects[]; /* NULL ends them */

#endif
