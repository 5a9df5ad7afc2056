/*
 * evaluators/answers/choice.h - letters of multiple choice. \text{(B)}, **B**, "B.", "B) 12" and "b" are B; "A, C",
 * "AC", "A and C" are a set, in any order. What is no letter, or has words that are not the option's, is none.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_ANSWERS_CHOICE_H
#define SLUICE_WORKERS_EVALUATORS_ANSWERS_CHOICE_H

#include "common/base/slice.h"

/* As bits, A is 1. 0: no letters, or something that is not clear. `*ret_text`: what follows a letter as its option's
 * text ("B. 12"), else empty. */
uint32_t choice_letters(struct slice text, struct slice *ret_text);

/* \text{B}, $B$, {B}, **B**, `B`, "B": one of them less; false: none is around it. */
bool choice_peel_marks(struct slice *text);

#endif
