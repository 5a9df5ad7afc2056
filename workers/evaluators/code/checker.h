/*
 * checker.h - whether a program's output is the expected one. Pure: texts in, a verdict out; time goes by their length.
 *
 *   exact   the same bytes, but for newlines at the end
 *   lines   as many lines, when blanks around both are gone, each equal but for blanks around it, or else the same
 *           words, of which two are alike when they are equal decimal numbers
 *   words   the same words, whatever stands between them
 *   floats  so, and two numbers are alike within a tolerance, absolute or as a share of the expected one
 */
#ifndef SLUICE_WORKERS_EVALUATORS_CODE_CHECKER_H
#define SLUICE_WORKERS_EVALUATORS_CODE_CHECKER_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/slice.h"

/* CHECKER_PROGRAM is none of these: checker_program.h. */
enum checker { CHECKER_LINES, CHECKER_EXACT, CHECKER_WORDS, CHECKER_FLOATS, CHECKER_PROGRAM };

enum checker checker_find(const char *word); /* of task.def */

bool checker_accepts(enum checker checker, double tolerance, struct slice expected, struct slice given);
/*
 * Of results of a function as JSON: numbers by value (1 is 1.0, and true is 1), lists in order, objects by name; with
 * CHECKER_FLOATS numbers within the tolerance. An expected value that stands alone in a list may be given without it.
 */
bool checker_accepts_value(enum checker checker, double tolerance, const json_t *expected, const json_t *given);

#endif
