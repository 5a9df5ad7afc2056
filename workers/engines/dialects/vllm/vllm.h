/* vllm.h - what other dialects use of vLLM's: /v1/completions with ids in and out. */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_VLLM_VLLM_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_VLLM_VLLM_H

#include "workers/engines/server/engine_state.h"

/* info->has_generate and logprobs_mode, by one or two tokens. -EPROTO: no ids come back. */
int vllm_learn_route(struct engine *engine, struct engine_info *info, bool may_generate, struct fail *fail);
/* Slots. */
int vllm_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                  uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail);
int vllm_stream(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                uint64_t max_tokens, uint64_t seed_offset, struct teller *teller, struct generation *ret,
                struct fail *fail);
int vllm_score(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *ret,
               struct fail *fail);

#endif
