/*
 * evaluators/answers/choice_options.h - what an answer chooses where the texts of the options are known: letters, or
 * one option by its whole text. Letters come first: where an option's text is "C", the answer C is the letter. A letter
 * that no option has is none.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_ANSWERS_CHOICE_OPTIONS_H
#define SLUICE_WORKERS_EVALUATORS_ANSWERS_CHOICE_OPTIONS_H

#include "workers/evaluators/answers/choice.h"

enum { CHOICE_OPTIONS_MAX = 26 };

enum choice_how {
    CHOICE_NOTHING,
    CHOICE_BY_LETTERS,
    CHOICE_BY_TEXT,
    CHOICE_SHARED_TEXT, /* of several options: none is chosen */
    CHOICE_MISMATCH,    /* a letter with the text of another option: neither is */
    CHOICE_SEVERAL      /* options one behind the other, each a letter with its text: none is */
};

struct choice_options {
    const char *texts[CHOICE_OPTIONS_MAX]; /* borrowed; A's first; NULL: there is no such option */
    size_t count;                          /* 0: the texts are not known, and letters alone count */
};

/* `*ret` is 0 unless something is chosen. */
enum choice_how choice_read(struct slice text, const struct choice_options *options, uint32_t *ret);
/* All these letters are options', or it is not known whether they are. */
bool choice_is_known(const struct choice_options *options, uint32_t letters);

#endif
