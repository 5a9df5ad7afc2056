/*
 * dockerfile/parse.h - the text of a Dockerfile as instructions: continued lines joined, comments and directives read,
 * heredocs taken, JSON forms told from shell forms. Pure: nothing is expanded or looked up here (stages.h does that),
 * no file is read. Form: docs.docker.com/reference/dockerfile. What cannot be read, and what is not done here, is
 * refused by its line, with what to do instead.
 */
#ifndef SLUICE_WORKERS_DOCKERFILE_PARSE_H
#define SLUICE_WORKERS_DOCKERFILE_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

enum { DOCKERFILE_INSTRUCTIONS_MAX = 1024, DOCKERFILE_WORDS_MAX = 512, DOCKERFILE_HEREDOCS_MAX = 8 };

struct dockerfile_heredoc {
    char *name, *content;
    bool is_expanded; /* its name was not quoted */
};

struct dockerfile_instruction {
    unsigned line; /* where it begins, from 1 */
    char *name;    /* in capitals: "RUN" */
    char **flags;  /* "--chmod=0755" */
    size_t flag_count;
    char *rest;   /* what follows name and flags; continued lines joined */
    char **words; /* of the JSON form, as they are meant; else of `rest`, between blanks, with their quotes */
    size_t word_count;
    bool is_json;
    struct dockerfile_heredoc heredocs[DOCKERFILE_HEREDOCS_MAX];
    size_t heredoc_count;
};

struct dockerfile {
    char escape; /* a backslash, or ` by a directive */
    struct dockerfile_instruction *each;
    size_t count;
};

/* -EINVAL with "line 7: ..."; -ENOMEM. dockerfile_finish *ret whatever it returned. */
int dockerfile_parse(struct slice text, struct dockerfile *ret, struct fail *fail);
void dockerfile_finish(struct dockerfile *dockerfile);
void dockerfile_words_finish(char **words, size_t count);

/* "line N: ...", -EINVAL: how all of them are refused. */
int dockerfile_refuse(struct fail *fail, unsigned line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
