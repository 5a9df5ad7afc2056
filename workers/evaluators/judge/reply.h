/*
 * reply.h - a judge's reply, read strictly. Pure.
 *
 *     The sum is right and the style is clumsy.
 *     VERDICT-1f3c9a02 {"correct": "yes", "style": 2}
 *
 * Only the judge's own words are read, behind the last </think>; of several labels the last counts. Behind the label
 * stands one JSON object with each criterion's name once and no other, and behind that nothing but blanks and what
 * Markdown puts around a line. An answer is one of the criterion's choices, in any case of letters; no or yes, or false
 * or true; a number within its bounds; or, where the criterion is optional, n/a. Anything else is no verdict: there is
 * no guessing, since a label or a score in the text that was judged would be found by it, too.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_JUDGE_REPLY_H
#define SLUICE_WORKERS_EVALUATORS_JUDGE_REPLY_H

#include "common/base/fail.h"
#include "workers/evaluators/judge/prompt.h"

/*
 * values[i] becomes what criterion i was answered: from 0, the worst, to 1, the best, whatever better says; NAN for
 * n/a. 0, or -EBADMSG with a sentence that says what of it is no verdict.
 */
int judge_reply_read(struct slice reply, const char *verdict_mark, struct judge_criteria criteria, double *values,
                     struct fail *fail);

#endif
