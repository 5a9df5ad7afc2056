/*
 * llama_vocabulary.h - what the ids of a llama.cpp server stand for, all of them: two vocabularies may
 * agree on any sample and differ in a word. Read once, when the server is learnt.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_LLAMA_LLAMA_VOCABULARY_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_LLAMA_LLAMA_VOCABULARY_H

#include "workers/engines/server/engine_state.h"

/*
 * info->vocabulary, how many ids there are, and their digest; 0 and "" where the server does not say how many,
 * "" alone where it refuses to name them.
 * info->plain_id, which is set before, stands between two of them. Awaits.
 */
int llama_vocabulary_read(struct engine *engine, struct engine_info *info, char ret_digest[80], struct fail *fail);

#endif
