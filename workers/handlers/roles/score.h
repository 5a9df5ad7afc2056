/* score.h - a handler.score as the verdict of evaluators. */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_SCORE_H
#define SLUICE_WORKERS_HANDLERS_ROLES_SCORE_H

#include "schemas/trajectory/verdict.h"

/*
 * `notes` are metrics that were noted before, of which a score's own replace those of their names. False with a
 * refusal: a part, a metric or a test is none, or there is neither a reward nor a part. Finish *ret also then.
 */
bool score_read(const struct msg_handler_score *score, const struct verdict *notes, struct verdict *ret,
                struct refusal *no);

#endif
