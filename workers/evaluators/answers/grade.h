/*
 * evaluators/answers/grade.h - a model's last words against the accepted answers: no job, no task, no sandbox. The
 * evaluators math, choice and exact and the program sluice-grade call it.
 *
 *   math    as evaluators/math/answer.h says
 *   choice  one letter, or the set of them: "B", "A, C". "A or B" and a list of all choices are what they are: several.
 *           Where the options' texts are known, the whole text of one is its letter
 *   exact   the text, but for what `normalize` lets pass
 *
 * The accepted answers may themselves be written in a box. Several answers of the model are never tried one by one.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_ANSWERS_GRADE_H
#define SLUICE_WORKERS_EVALUATORS_ANSWERS_GRADE_H

#include "workers/evaluators/answers/choice_options.h"
#include "workers/evaluators/answers/extract.h"
#include "workers/evaluators/answers/texts_equal.h"

enum grade_kind { GRADE_MATH, GRADE_CHOICE, GRADE_EXACT };

struct grade_options {
    enum grade_kind kind;
    enum extract extract;
    enum normalize normalize;      /* exact */
    double relative, absolute;     /* math: tolerances, 0: none */
    struct choice_options options; /* choice */
};

struct grade {
    bool is_right;
    char *answer;  /* as extracted; NULL: there is none */
    char why[512]; /* UTF-8, one line */
};

bool grade_kind_parse(const char *word, enum grade_kind *ret);
bool normalize_parse(const char *word, enum normalize *ret);

/* NULL, or why none of these answers can be judged by: a choice that is no letter, or no option's. */
const char *grade_refuse(const struct grade_options *options, const char *const *accepted, size_t count);

/* The caller calls grade_finish. No memory is an answer that is not right, and why says so. */
void grade_text(const struct grade_options *options, struct slice text, const char *const *accepted, size_t count,
                struct grade *ret);
void grade_finish(struct grade *grade);

#endif
