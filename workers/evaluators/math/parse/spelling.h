/* evaluators/math/parse/spelling.h - how what an answer is made of is written: commands, words, signs in ASCII and in
 * Unicode. */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_SPELLING_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_SPELLING_H

#include "workers/evaluators/math/parse/scan.h"

struct spelling {
    const char *text; /* as written: a command's name, a word, or bytes */
    enum math_token_kind kind;
    char sign;
    const char *name; /* NULL: as written */
};

enum spelling_table {
    SPELLING_COMMANDS, /* after a backslash */
    SPELLING_WORDS,    /* runs of letters that are no product of letters */
};

/* NULL: it is not known. */
const struct spelling *spelling_find(enum spelling_table table, struct slice text);
/* The sign that `text` begins with, and its length. MATH_END: of money, nothing; MATH_NUMBER: a raised digit. */
const struct spelling *spelling_begin(struct slice text, size_t *ret_len);

bool spelling_is_function(struct slice name);
bool spelling_is_look(struct slice command); /* only steers how it looks */
bool spelling_is_text(struct slice command); /* \text and its like */

#endif
