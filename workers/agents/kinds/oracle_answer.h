/* oracle_answer.h - what the oracle's last words are. */
#ifndef SLUICE_WORKERS_AGENTS_KINDS_ORACLE_ANSWER_H
#define SLUICE_WORKERS_AGENTS_KINDS_ORACLE_ANSWER_H

#include "common/base/buffer.h"
#include "schemas/task/task.h"

/*
 * Appends solution.answer; where there is no solution, the accepted answer of math, choice and exact, in the form in
 * which eval.extract looks for it; else nothing.
 */
void oracle_answer(const struct task *task, struct buffer *ret);

#endif
