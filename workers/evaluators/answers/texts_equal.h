/*
 * evaluators/answers/texts_equal.h - whether two texts are the same, but for what is let pass.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_ANSWERS_TEXTS_EQUAL_H
#define SLUICE_WORKERS_EVALUATORS_ANSWERS_TEXTS_EQUAL_H

#include "common/base/slice.h"

/* What may differ; each with all before it. Case is that of ASCII. */
enum normalize { NORMALIZE_NONE, NORMALIZE_BLANKS, NORMALIZE_CASE, NORMALIZE_PUNCTUATION };

/* Texts of which nothing is left are equal by NORMALIZE_NONE alone. */
bool texts_equal(struct slice a, struct slice b, enum normalize normalize);

#endif
