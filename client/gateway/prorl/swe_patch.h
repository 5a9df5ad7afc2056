/* swe_patch.h - which files a patch is of, and which of them a repository's tests are run on. */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_SWE_PATCH_H
#define SLUICE_CLIENT_GATEWAY_PRORL_SWE_PATCH_H

#include <jansson.h>

#include "common/base/buffer.h"

/* A word of bash, in quotes where it needs them, as Python's shlex has it. */
void swe_append_word(struct buffer *ret, const char *word);
/* Their paths after it, each once; the caller's. */
json_t *swe_patch_files(const char *patch);
/* The end of a test command: the files of a test patch that are tests, each a word of bash behind a blank. */
void swe_patch_tests(const char *repository, const char *patch, struct buffer *ret);

#endif
