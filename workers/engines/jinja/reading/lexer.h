/*
 * lexer.h - a template's text cut into what stands as it is and the words of its tags. Blanks around tags are dealt
 * with here, as Jinja does it with trim_blocks and lstrip_blocks.
 */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_READING_LEXER_H
#define SLUICE_WORKERS_ENGINES_JINJA_READING_LEXER_H

#include "common/base/slice.h"
#include "workers/engines/jinja/values/run.h"

enum jinja_token_kind {
    TOKEN_TEXT,
    TOKEN_PRINT, /* {{ */
    TOKEN_PRINT_END,
    TOKEN_BLOCK, /* {% */
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_INTEGER,
    TOKEN_REAL,
    TOKEN_STRING, /* its escapes resolved */
    TOKEN_OPERATOR,
    TOKEN_END
};

struct jinja_token {
    enum jinja_token_kind kind;
    unsigned line;
    struct slice text;
};

struct jinja_tokens {
    struct jinja_token *list;
    size_t count, capacity;
};

/* The last one is TOKEN_END. The source must live as long; what went wrong is in run. */
void jinja_lex(struct jinja_run *run, struct slice source, struct jinja_tokens *ret);

#endif
