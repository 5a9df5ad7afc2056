/* digest.h - sha256 in the form names use: "sha256:<64 hex digits>". */
#ifndef SLUICE_COMMON_DIGEST_H
#define SLUICE_COMMON_DIGEST_H

#include "common/slice.h"

enum { DIGEST_SIZE = 80 }; /* room for the form above */

/* False when the library failed (out of memory). */
bool digest_of(struct slice bytes, char ret[DIGEST_SIZE]);
/* Of everything readable from fd, from where it stands. */
bool digest_of_file(int fd, char ret[DIGEST_SIZE]);
bool digest_is_valid(const char *digest);

#endif
