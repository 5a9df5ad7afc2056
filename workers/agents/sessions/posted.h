/*
 * posted.h - the body with which a session is ended, a JSON object:
 *
 *     {"reward": 0.5, "parts": {"format": 0.1, "correct": 0.4}, "metrics": {"edits": 3}, "detail": "words"}
 *
 * All may be absent, and so may the body. Without a reward it is the sum of the parts; without these there is none. A
 * task that is scored by another evaluator takes none of these. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_SESSIONS_POSTED_H
#define SLUICE_WORKERS_AGENTS_SESSIONS_POSTED_H

#include "schemas/messages/message.h"
#include "schemas/trajectory/verdict.h"

enum { POSTED_MAX = 65536 }; /* bytes */

/* False with a refusal that names the field; *ret, all zero before, is then to be finished, too. */
bool posted_read(struct slice body, const char *eval_kind, struct verdict *ret, struct refusal *no);

#endif
