/* tokenizer_file.h - a tokenizer read from its file. */
#ifndef SLUICE_WORKERS_TOKENIZER_TOKENIZER_FILE_H
#define SLUICE_WORKERS_TOKENIZER_TOKENIZER_FILE_H

#include "workers/tokenizer/tokenizer_inside.h"

/* Fills in all but the scratch room. */
int tokenizer_read(struct tokenizer *tokenizer, const json_t *file, struct fail *fail);

#endif
