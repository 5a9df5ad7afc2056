/*
 * reward_text.h - what a verifier's reward files say, as a verdict. Numbers are taken as they are, below 0 and above 1
 * too.
 *
 *     reward.txt     one number, as Python's float() reads it: blanks around it, 1e0, 1_0; the part "reward"
 *     reward.json    one flat object of numbers, true and false as 1 and 0; a part for each name
 *
 * The reward of several is that of the name "reward", of which the others are no share (weight 0); where there is no
 * such name, it is their mean. Without a reward, `why` says what is wrong with the file.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_VERIFIER_REWARD_TEXT_H
#define SLUICE_WORKERS_EVALUATORS_VERIFIER_REWARD_TEXT_H

#include "schemas/trajectory/verdict.h"

enum { REWARD_TXT_MAX = 4096, REWARD_JSON_MAX = 65536 }; /* bytes of a file; what is longer is not read */

/* `verdict` is all zero; verdict_finish it. */
void reward_txt_read(struct slice text, struct verdict *verdict);
void reward_json_read(struct slice text, struct verdict *verdict);

#endif
