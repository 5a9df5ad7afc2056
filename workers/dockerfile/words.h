/*
 * dockerfile/words.h - words of an instruction: cut between blanks that no quote or escape holds, and expanded as
 * Dockerfiles have it: $NAME, ${NAME}, ${NAME:-word}, ${NAME-word}, ${NAME:+word}, ${NAME+word}; nothing within single
 * quotes.
 */
#ifndef SLUICE_WORKERS_DOCKERFILE_WORDS_H
#define SLUICE_WORKERS_DOCKERFILE_WORDS_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

enum { EXPANDED_MAX = 65536 };

/* The length of the word that `text` begins with, quotes and all. */
size_t word_length(const char *text, char escape);

struct expansion {
    const char *(*find)(void *arg, const char *name); /* NULL: there is none of that name */
    void *arg;
    char escape;
    bool keeps_quotes; /* of a heredoc: quotes are text */
};

/* The caller frees *ret. -EINVAL: a name that ends nowhere or a form that is none; -E2BIG: beyond EXPANDED_MAX. */
int word_expand(const struct expansion *expansion, const char *text, char **ret, struct fail *fail);

#endif
