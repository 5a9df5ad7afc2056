/* answer.h - what /run answers: the row's own columns, its response, its reward, and what became of it. */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_ANSWER_H
#define SLUICE_CLIENT_GATEWAY_GYM_ANSWER_H

#include <jansson.h>

#include "client/sluice.h"
#include "common/base/buffer.h"

/* Of the row: what the answer does not say itself, as members with a comma behind each. */
void answer_keep_columns(const json_t *row, struct buffer *ret);
/* A rollout that has ended. `params`: of the row. */
void answer_append(const struct sluice_trajectory *trajectory, const json_t *params, struct slice columns,
                   struct buffer *out);
/* None, and never will be. is_lasting: trying again would change nothing. */
void answer_append_failure(const json_t *params, struct slice columns, const char *failure, const char *words,
                           bool is_lasting, struct buffer *out);

#endif
