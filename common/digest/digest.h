/* digest.h - sha256 in the form names use: "sha256:<64 hex digits>". */
#ifndef SLUICE_COMMON_DIGEST_DIGEST_H
#define SLUICE_COMMON_DIGEST_DIGEST_H

#include "common/base/slice.h"

enum { DIGEST_SIZE = 80 /* room for the form above */, DIGEST_RAW_SIZE = 32 };

/* False when the library failed (out of memory). */
bool digest_of(struct slice bytes, char ret[DIGEST_SIZE]);
/* The bytes themselves. */
bool digest_raw(struct slice bytes, uint8_t ret[DIGEST_RAW_SIZE]);
/* Of everything readable from fd, from where it stands. */
bool digest_of_file(int fd, char ret[DIGEST_SIZE]);

/* Of bytes that come a piece at a time. NULL: the library failed. */
struct digest *digest_begin(void);
void digest_add(struct digest *digest, struct slice piece);
/* For what is made of several things, so that no two lists of them are the same bytes: a text and its end (NULL: ""), a
 * number, and texts behind their number. */
void digest_add_text(struct digest *digest, const char *text);
void digest_add_number(struct digest *digest, uint64_t number);
void digest_add_texts(struct digest *digest, char *const *texts, size_t count);
/* Frees it. False when the library failed, now or before. */
bool digest_end(struct digest **digest, char ret[DIGEST_SIZE]);
void digest_drop(struct digest **digest); /* NULL-safe */

bool digest_is_valid(const char *digest);

#endif
