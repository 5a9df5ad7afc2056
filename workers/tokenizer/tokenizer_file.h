/* tokenizer_file.h - a tokenizer read from its file. */
#ifndef SLUICE_WORKERS_TOKENIZER_TOKENIZER_FILE_H
#define SLUICE_WORKERS_TOKENIZER_TOKENIZER_FILE_H

#include "workers/tokenizer/tokenizer_inside.h"

/* Byte-level vocabularies are written with a printable character for each byte. False: it is none. */
bool byte_level_decode(struct slice text, struct buffer *ret);

/* Fills in all but the scratch room. */
int tokenizer_read(struct tokenizer *tokenizer, const json_t *file, struct fail *fail);

#endif
