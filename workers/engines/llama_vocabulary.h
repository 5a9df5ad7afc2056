/*
 * llama_vocabulary.h - what the ids of a llama.cpp server stand for, all of them: two vocabularies may
 * agree on any sample and differ in a word. Read once, when the server is learnt.
 */
#ifndef SLUICE_WORKERS_LLAMA_VOCABULARY_H
#define SLUICE_WORKERS_LLAMA_VOCABULARY_H

#include "workers/engines/dialect.h"

/* Its digest; "" where the server does not say how many ids there are, or refuses to name them. plain_id stands between two of them. Awaits. */
int llama_vocabulary_read(struct engine *engine, uint32_t plain_id, char ret[80],
                          struct fail *fail);

#endif
