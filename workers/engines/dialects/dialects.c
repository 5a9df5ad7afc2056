#include "workers/engines/dialects/dialects.h"

const struct dialect *const engine_dialects[] = {&dialect_llama,  &dialect_sglang,   &dialect_vllm,
                                                 &dialect_openai, &dialect_generate, NULL};
