/*
 * tokenizer_sample.h - the text that a tokenizer is known by: a tokenizer_digest is the sha256 of the
 * ids, little-endian u32, that it gives for this text without special tokens added (docs/trajectory.md).
 * Words, numbers, blanks, code and many scripts; nothing in it looks like a special token, and it is in
 * Unicode's form NFC. It never changes: digests are kept. The Python client has the same.
 */
#ifndef SLUICE_SCHEMAS_TOKENIZER_SAMPLE_H
#define SLUICE_SCHEMAS_TOKENIZER_SAMPLE_H

extern const char tokenizer_sample[]; /* UTF-8 */

#endif
