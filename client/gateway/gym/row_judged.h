/* row_judged.h - `eval` of what a row holds beside its request, by the rules that row.h names. */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_ROW_JUDGED_H
#define SLUICE_CLIENT_GATEWAY_GYM_ROW_JUDGED_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/fail.h"

/* Puts eval, and limits where tests need time, into the task. False with a sentence: it says nothing of it. */
bool row_judged(const json_t *row, json_t *task, struct fail *fail);

#endif
