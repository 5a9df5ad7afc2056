/* nfc.h - Unicode's normalization form C, which some tokenizers put texts into before they cut them. Pure. */
#ifndef SLUICE_WORKERS_TOKENIZER_NFC_H
#define SLUICE_WORKERS_TOKENIZER_NFC_H

#include "common/base/buffer.h"

/* Appends the text, which is UTF-8, in that form. False: no memory, or more than a thousand marks on one character. */
bool nfc_append(struct buffer *out, struct slice text);

#endif
