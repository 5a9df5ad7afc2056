/*
 * evaluators/answers/extract.h - the answer in a model's last words. What was thought before </think> is no answer, and
 * a <think> that is never closed leaves none.
 *
 *   box       the last \boxed{...}. One that is never closed leaves no answer: an earlier one was not the last word.
 *             Boxes that stand together (\boxed{1}, \boxed{2}) are one list
 *   hashes    what follows the last #### on its line
 *   answer    what follows the last "Answer:" on its line, in any case; also "**Answer:** 5" and "final answer is 5"
 *   number    the last number
 *   letter    the one letter of a choice: "(B)", "B.", "**B**", "B: text", alone or after "Answer:"
 *   all       all of it
 *   auto      math: a box where there is one, else hashes, else answer. choice: a box, else answer, else letter.
 *             exact: a box, else hashes, else answer, else all
 */
#ifndef SLUICE_WORKERS_EVALUATORS_ANSWERS_EXTRACT_H
#define SLUICE_WORKERS_EVALUATORS_ANSWERS_EXTRACT_H

#include "common/base/buffer.h"

enum extract { EXTRACT_AUTO, EXTRACT_BOX, EXTRACT_HASHES, EXTRACT_ANSWER, EXTRACT_NUMBER, EXTRACT_LETTER, EXTRACT_ALL };
enum { EXTRACT_BYTES_MAX = 65536 };

bool extract_parse(const char *word, enum extract *ret);

/* What follows the last </think>; false: a <think> is still open. */
bool extract_after_thinking(struct slice text, struct slice *ret);

/* Appends the answer to `ret`. False: there is none, and `*ret_why` says why in words. `how` is not EXTRACT_AUTO. */
bool extract_answer(struct slice text, enum extract how, struct buffer *ret, const char **ret_why);
/* Whether \boxed is in the text at all, closed or not; whether #### is. */
bool extract_has_box(struct slice text);
bool extract_has_hashes(struct slice text);
bool extract_has_answer(struct slice text);

#endif
