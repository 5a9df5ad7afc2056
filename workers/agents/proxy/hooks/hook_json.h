/* hook_json.h - what passes a hook, in JSON: messages, tools, replies, without the handles of turns. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HOOKS_HOOK_JSON_H
#define SLUICE_WORKERS_AGENTS_PROXY_HOOKS_HOOK_JSON_H

#include "common/base/fail.h"
#include "common/base/slice.h"
#include "workers/agents/proxy/dialects/dialect.h"
#include "workers/agents/proxy/said.h"

/* NULL: out of memory. */
json_t *hook_json_messages(const struct said *messages, size_t count);
json_t *hook_json_tools(const struct said_tool *tools, size_t count);
json_t *hook_json_reply(const struct reply *reply);
json_t *hook_json_told(const struct said *message); /* what hook_json_read_reply read, as hook_json_reply has it */

/* A list of what hook_json_messages makes, into `ret`, which is empty. -EINVAL with a sentence that names the place. */
int hook_json_read_messages(const json_t *list, struct said_request *ret, struct fail *fail);
/*
 * What hook_json_reply makes, as the one message of `ret`; its calls have no ids. What it leaves out, or has as null,
 * is as in `now`.
 */
int hook_json_read_reply(const json_t *reply, const json_t *now, struct said_request *ret, struct fail *fail);
/* NULL: no JSON, or too deep. */
json_t *hook_json_parse(struct slice text);

#endif
