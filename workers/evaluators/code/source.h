/* source.h - the program within an answer. Pure. */
#ifndef SLUICE_WORKERS_EVALUATORS_CODE_SOURCE_H
#define SLUICE_WORKERS_EVALUATORS_CODE_SOURCE_H

#include <stdbool.h>

#include "common/base/slice.h"

/*
 * The content of the last fenced block, borrowed: lines between one that begins with three backquotes or more and the
 * next that is as many, or the end of a block that is not closed. What stands before the last </think> is no answer.
 * False: there is none.
 */
bool source_find(struct slice answer, struct slice *ret);

#endif
