#include "workers/engines/dialects/generate/generate_reply.h"

#include <errno.h>
#include <stdio.h>

#include "common/json/json_doc_look.h"

static int read_logprobs(const struct json_doc *doc, const struct json_doc_node *list, struct generation *ret,
                         struct fail *fail)
{
    if (!list || list->kind != JSON_DOC_ARRAY)
        return fail_set(fail, -EPROTO, "the engine's answer has no logprobs, of which one of each id is wanted");
    if (json_doc_count(list) != ret->sampled.count)
        return fail_set(fail, -EPROTO, "the engine's answer has %zu response_ids and %u logprobs", ret->sampled.count,
                        json_doc_count(list));
    int error = reply_room(ret, fail);
    const struct json_doc_node *node = json_doc_first(list);
    for (size_t i = 0; error == 0 && i < ret->sampled.count; i++, node = json_doc_behind(doc, node))
        error = reply_logprob(node, i, &ret->logprobs[i], fail);
    return error;
}

int generate_reply_read(const struct json_doc *doc, uint64_t max_tokens, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *ids = json_doc_get(doc, json_doc_root(doc), "response_ids");
    if (!ids || ids->kind != JSON_DOC_ARRAY)
        return fail_set(fail, -EPROTO, "the engine's answer has no response_ids");
    int error = reply_ids(doc, ids, max_tokens, &ret->sampled, fail);
    if (error == 0)
        error = read_logprobs(doc, json_doc_get(doc, json_doc_root(doc), "logprobs"), ret, fail);
    if (error == 0)
        snprintf(ret->finish, sizeof(ret->finish), "%s", ret->sampled.count < max_tokens ? "stop" : "length");
    return error;
}
