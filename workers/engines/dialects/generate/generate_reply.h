/* generate_reply.h - the answer of POST /generate, {"response_ids": [...], "logprobs": [...]}: one of each. Pure. */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_GENERATE_GENERATE_REPLY_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_GENERATE_GENERATE_REPLY_H

#include "workers/engines/dialects/reply_check.h"

/*
 * It gives no reason for the end: a reply of as many tokens as were asked for is cut, a shorter one ended by itself.
 * Ids are of a vocabulary that others know. -EPROTO with a sentence.
 */
int generate_reply_read(const struct json_doc *doc, uint64_t max_tokens, struct generation *ret, struct fail *fail);

#endif
